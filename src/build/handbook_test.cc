#include "build/handbook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

store::BuildRow Version(int64_t number, std::string goal) {
  store::BuildRow row{.id = "b" + std::to_string(number), .project = "shop", .goal = goal};
  row.number = number;
  row.completed_at = ParseTime("2026-11-15T09:00:00Z").value();
  return row;
}

TEST(Handbook, IsWrittenFromReadmeAndHistory) {
  Files files = {{"README.md",
                  "# Shop\n\nSells ropes\nand sails.\n\nMore.\n\n## Features\n\n- A basket\n"
                  "* Prices\n\n## Other\n- nothing\n"},
                 {"index.html", "<h1>Ropes</h1>"}};
  store::BuildRow build = Version(3, "add sails");
  build.preview_url = "http://3000-x.localhost";
  build.framework = "static";
  DeployPath path{.target = "static", .directory = "."};
  auto book = WriteHandbook(build, files, path,
                            {Version(1, "a shop"), Version(3, "add sails"), Version(2, "")});
  EXPECT_EQ(book.overview, "add sails\n\nSells ropes and sails.");
  EXPECT_THAT(book.features, ElementsAre("A basket", "Prices"));
  EXPECT_THAT(book.getting_started.front(), HasSubstr("http://3000-x.localhost"));
  EXPECT_THAT(book.getting_started.back(), HasSubstr("the directory ."));
  ASSERT_EQ(book.changelog.size(), 2) << "the first version changes nothing";
  EXPECT_EQ(book.changelog[0].version, "build_v0_3");
  EXPECT_EQ(book.changelog[1].description, "New files.");
  std::string text = Markdown("shop", book);
  EXPECT_THAT(text, HasSubstr("## Features\n\n- A basket\n"));
  EXPECT_THAT(text, HasSubstr("- build_v0_3 (2026-11-15): add sails\n"));
}

TEST(Handbook, APageNamesItsPartsItself) {
  Files files = {{"index.html",
                  "<h1 class=\"x\">Our <b>ropes</b></h1><h2>Prices</h2><h2>Prices</h2><h2>open"}};
  store::BuildRow build = Version(1, "");
  build.start_command = "npm start";
  build.port = 3000;
  DeployPath path{
      .target = "node", .install = {"npm ci"}, .build = "npm run build", .start = "npm start"};
  auto book = WriteHandbook(build, files, path, {build});
  EXPECT_THAT(book.features, ElementsAre("Our ropes", "Prices"));
  EXPECT_THAT(book.getting_started,
              ElementsAre(HasSubstr("/api/v1/builds/b1/archive"), HasSubstr("npm ci"),
                          HasSubstr("npm run build"), HasSubstr("npm start")));
  EXPECT_THAT(book.overview, HasSubstr("shop is a"));
  EXPECT_TRUE(book.changelog.empty());
  EXPECT_THAT(Markdown("shop", book), Not(HasSubstr("## Changes")));
  EXPECT_THAT(book.faq.front().answer, HasSubstr("port 3000"));
}

}  // namespace
}  // namespace caisson::build
