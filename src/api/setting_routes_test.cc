#include "api/setting_routes.h"

#include <gtest/gtest.h>

namespace caisson::api {
namespace {

TEST(SettingTexts, AreReadFromTables) {
  auto texts = SettingTexts(
      "# Title\n| setting | default | |\n|---|---|---|\n| **part** | | |\n"
      "| `one` | 5 | what it is; see [there](there.md#x) and [here](h) [not this] |\n"
      "| `two`, `three` (or `THREE`) | | both |\n| `no` | row |\n");
  EXPECT_EQ(texts["one"], "what it is; see there and here [not this]");
  EXPECT_EQ(texts["two"], "both");
  EXPECT_EQ(texts["three"], "both");
  EXPECT_FALSE(texts.contains("no"));
}

TEST(SettingTexts, ExplainEverySetting) {
  auto texts = SettingTexts(kOperationsText);
  texts.merge(SettingTexts(kGithubText));
  for (const ShownSetting& one : ShowConfig(Config()))
    EXPECT_FALSE(texts[one.name].empty()) << one.name;
}

}  // namespace
}  // namespace caisson::api
