#include "cli/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Site, ThePageCarriesTheNonceOfItsAnswer) {
  std::string page = RenderPage("abc123");
  EXPECT_THAT(page, HasSubstr("content=\"abc123\""));
  EXPECT_THAT(page, HasSubstr("/app/assets/"));
  EXPECT_THAT(page, Not(HasSubstr("__NONCE__")));
}

TEST(Site, ThePageHasNoScriptAndNoStyleOfItsOwn) {
  std::string page = RenderPage("abc123");
  EXPECT_THAT(page, Not(HasSubstr("<style")));
  EXPECT_THAT(page, Not(HasSubstr("style=")));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
}

TEST(Site, ThePolicyAllowsFramesOfPreviewsOnly) {
  std::string policy = PagePolicy("n", "boxes.example");
  EXPECT_THAT(policy,
              HasSubstr("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-n'"));
  EXPECT_THAT(policy, HasSubstr("frame-src http://*.boxes.example:* https://*.boxes.example:*"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

}  // namespace
}  // namespace caisson::cli
