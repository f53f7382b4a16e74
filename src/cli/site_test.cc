#include "cli/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Site, ThePageTellsItsOwnAddress) {
  std::string page = RenderPage("https", "boxes.example:8443");
  EXPECT_THAT(page, HasSubstr("export E2B_API_URL=https://boxes.example:8443"));
  EXPECT_THAT(page, HasSubstr(CAISSON_VERSION));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(Site, ThePageEchoesNothingHarmful) {
  for (std::string host : {"<script>", "a b", "x\"y", "{{ORIGIN}}", ""}) {
    std::string page = RenderPage("http", host);
    EXPECT_THAT(page, HasSubstr("export E2B_API_URL=http://127.0.0.1:8000"));
    EXPECT_THAT(page, Not(HasSubstr("<script")));
  }
}

TEST(Site, ThePageNeedsNothingButItsStyle) {
  std::string page = RenderPage("http", "localhost");
  EXPECT_THAT(page, Not(HasSubstr("style=")));
  EXPECT_THAT(page, Not(HasSubstr("<style")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

}  // namespace
}  // namespace caisson::cli
