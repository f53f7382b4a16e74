#include "build/tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::build {
namespace {

using ::testing::HasSubstr;

TEST(Tiers, TheDefaults) {
  auto tiers = ParseTiers(Config());
  ASSERT_TRUE(tiers);
  struct Row {
    const char* name;
    int64_t per_user, per_project, per_day, iterations, boost;
  };
  for (const Row& row : {Row{"free", 2, 2, 5, 2, 0}, Row{"plus", 3, 3, 50, 3, 2},
                         Row{"pro", 10, 5, 200, 5, 5}, Row{"none", 0, 0, 0, 0, 0}}) {
    const Tier& tier = tiers->at(row.name);
    EXPECT_EQ(tier.name, row.name);
    EXPECT_EQ(tier.per_user, row.per_user) << row.name;
    EXPECT_EQ(tier.per_project, row.per_project) << row.name;
    EXPECT_EQ(tier.per_day, row.per_day) << row.name;
    EXPECT_EQ(tier.iterations, row.iterations) << row.name;
    EXPECT_EQ(tier.boost, row.boost) << row.name;
  }
  EXPECT_EQ(tiers->size(), 4u);
}

TEST(Tiers, ErrorsNameWhatIsWrong) {
  struct Case {
    const char* tiers;
    const char* message;
  };
  for (const Case& one :
       {Case{"", "is not NAME=NUMBERS"}, Case{"free", "\"free\" is not"},
        Case{"free=1/2/3", "free must have 5 numbers, not 3"}, Case{"free=1/2/3/4/5/6", "not 6"},
        Case{"free=1/2/x/4/5", "\"x\" of free"}, Case{"free=1/2/-3/4/5", "\"-3\" of free"},
        Case{"free=1/2//4/5", "\"\" of free"},
        Case{"free=1/2/99999999999999999999/4/5", "of free is no number"},
        Case{"free=1/1/1/1/1,free=2/2/2/2/2", "free is there twice"},
        Case{"free=1/1/1/1/1,", "\"\" is not"}, Case{"a b=1/1/1/1/1", "\"a b=1/1/1/1/1\" is not"},
        Case{"pro=1/1/1/1/1", "build_tiers has no \"free\""}}) {
    Config config;
    config.build_tiers = one.tiers;
    auto tiers = ParseTiers(config);
    ASSERT_FALSE(tiers) << one.tiers;
    EXPECT_EQ(tiers.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(tiers.error().message(), HasSubstr(one.message));
  }
}

TEST(Tiers, TheNextDayBeginsAtMidnight) {
  Time midnight = ParseTime("2026-11-16T00:00:00Z").value();
  EXPECT_EQ(NextDay(ParseTime("2026-11-15T00:00:00Z").value()), midnight);
  EXPECT_EQ(NextDay(ParseTime("2026-11-15T23:59:59.999999999Z").value()), midnight);
  EXPECT_EQ(NextDay(ParseTime("2026-12-31T10:00:00Z").value()),
            ParseTime("2027-01-01T00:00:00Z").value());
}

}  // namespace
}  // namespace caisson::build
