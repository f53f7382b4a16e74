#include "build/readiness.h"

#include <gmock/gmock.h>

namespace caisson::build {
namespace {

using ::testing::ElementsAre;

store::BuildRow Ready() { return {.state = "ready", .start_command = "the server"}; }

std::vector<std::string> Codes(const std::vector<Issue>& issues) {
  std::vector<std::string> codes;
  for (const Issue& issue : issues) codes.push_back(issue.code);
  return codes;
}

TEST(Readiness, APageIsServedAsItIs) {
  Readiness found = Judge(Ready(), {{"public/index.html", "x"}});
  EXPECT_TRUE(found.blocking.empty());
  EXPECT_TRUE(found.warnings.empty());
  EXPECT_EQ(found.path.target, "static");
  EXPECT_EQ(found.path.directory, "public");
  EXPECT_TRUE(found.path.install.empty());
  EXPECT_EQ(found.path.start, "");
}

TEST(Readiness, WhatIsNotReadyIsBlocked) {
  Readiness found = Judge({.state = "failed"}, {{"index.html", "x"}});
  EXPECT_THAT(Codes(found.blocking), ElementsAre("not_ready"));
}

TEST(Readiness, ADevelopmentServerIsBuilt) {
  Files files = {{"package.json", R"({"scripts":{"dev":"vite"},"dependencies":{"vite":"6"}})"}};
  Readiness found = Judge(Ready(), files);
  EXPECT_THAT(Codes(found.blocking), ElementsAre("no_build_script"));
  EXPECT_THAT(Codes(found.warnings), ElementsAre("no_lock_file"));
  files["package.json"] =
      R"({"scripts":{"dev":"vite","build":"vite build"},"dependencies":{"vite":"6"}})";
  files["package-lock.json"] = "{}";
  found = Judge(Ready(), files);
  EXPECT_TRUE(found.blocking.empty());
  EXPECT_TRUE(found.warnings.empty());
  EXPECT_EQ(found.path.target, "static");
  EXPECT_EQ(found.path.directory, "dist");
  EXPECT_EQ(found.path.build, "npm run build");
}

TEST(Readiness, AServerIsStarted) {
  Files node = {{"package.json", R"({"scripts":{"dev":"next dev","build":"next build",
      "start":"next start"},"dependencies":{"next":"15"}})"}};
  EXPECT_EQ(Judge(Ready(), node).path.start, "npm run start");
  EXPECT_EQ(Judge(Ready(), node).path.target, "node");
  Files python = {{"requirements.txt", "flask\n"}, {"app.py", "import flask"}};
  Readiness found = Judge(Ready(), python);
  EXPECT_EQ(found.path.target, "python");
  EXPECT_EQ(found.path.start, "the server");
  EXPECT_EQ(found.path.install.size(), 1U);
}

TEST(Readiness, SkippedChecksAndAnUnknownStartBlock) {
  store::BuildRow build = Ready();
  build.options = R"({"checks": []})";
  Files files = {{"requirements.txt", "flask\n"}, {"app.py", "import flask"}};
  EXPECT_THAT(Codes(Judge(build, files).blocking), ElementsAre("checks_skipped"));
  EXPECT_THAT(Codes(Judge(Ready(), {{"notes.txt", "x"}}).blocking),
              ElementsAre("no_start_command"));
  build.options = R"({"start_command": "./serve"})";
  EXPECT_TRUE(Judge(build, {{"notes.txt", "x"}}).blocking.empty());
}

TEST(Readiness, SecretsAreFoundAndNotTold) {
  std::string key = "ghp_0123456789abcdef0123";
  auto found = FindSecrets("app.js", "const token = next();\ncall('" + key + "');\n", 10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "app.js");
  EXPECT_EQ(found[0].line, 2);
  EXPECT_EQ(found[0].message.find(key), std::string::npos);
  EXPECT_EQ(FindSecrets("db.py", "url = 'postgres://me:pass@db/x'", 10).size(), 1U);
  EXPECT_EQ(FindSecrets("a/.env", "API_KEY=x1\nNAME=y", 10).size(), 1U);
  EXPECT_TRUE(FindSecrets(".env.example", "API_KEY=x1", 10).empty());
  EXPECT_EQ(FindSecrets(".env", "A_KEY=1\nB_KEY=2\nC_KEY=3", 2).size(), 2U);
}

}  // namespace
}  // namespace caisson::build
