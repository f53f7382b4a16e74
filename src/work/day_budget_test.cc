#include "work/day_budget.h"

#include "work/costs.h"
#include "work/work_fixture.h"

namespace caisson::work {
namespace {

constexpr std::chrono::seconds kDay{86'400};

Time At(std::string_view text) { return ParseTime(text).value(); }

TEST(DayAt, KnowsTheDayAndTheRenewal) {
  DayBudget day = DayAt(At("2026-11-15T16:14:42Z"), kDay);
  EXPECT_EQ(FormatTime(day.begins_at), "2026-11-15T00:00:00Z");
  EXPECT_EQ(FormatTime(day.ends_at), "2026-11-16T00:00:00Z");
  EXPECT_EQ(FormatTime(day.renews_at), "2026-12-01T00:00:00Z");
  EXPECT_EQ(day.days, 16);
  EXPECT_EQ(DayAt(At("2026-11-01T00:00:00Z"), kDay).days, 30);
  EXPECT_EQ(DayAt(At("2026-12-31T23:59:59Z"), kDay).days, 1);
  EXPECT_EQ(FormatTime(DayAt(At("2026-12-31T23:59:59Z"), kDay).renews_at), "2027-01-01T00:00:00Z");
  EXPECT_EQ(DayAt(At("2028-02-01T00:00:00Z"), kDay).days, 29);
}

TEST(DayAt, TheLastDayEndsWithTheMonth) {
  DayBudget day = DayAt(At("2026-11-30T23:00:00Z"), std::chrono::hours(7 * 24));
  EXPECT_EQ(FormatTime(day.begins_at), "2026-11-29T00:00:00Z");
  EXPECT_EQ(FormatTime(day.ends_at), "2026-12-01T00:00:00Z");
  EXPECT_EQ(day.days, 1);
}

TEST(ShareOf, IsWhatIsLeftDividedByTheDays) {
  EXPECT_EQ(ShareOf(30'000'000, 0, 30), 1'000'000);
  EXPECT_EQ(ShareOf(30'000'000, 14'000'001, 16), 999'999);
  EXPECT_EQ(ShareOf(30'000'000, 30'000'001, 16), 0) << "never less than nothing";
}

TEST(DayBudget, KnowsWhenItIsUsedUpAndOverrun) {
  DayBudget day{.limit = 1'000, .spent = 999};
  EXPECT_FALSE(day.used_up());
  day.spent = 1'000;
  EXPECT_TRUE(day.used_up());
  day.spent = 1'100;
  EXPECT_FALSE(day.overrun(110));
  day.spent = 1'101;
  EXPECT_TRUE(day.overrun(110));
}

TEST(DayBudget, WakesOnTheNextDayOrWithTheNextMonth) {
  DayBudget day = DayAt(At("2026-11-15T16:14:42Z"), kDay);
  EXPECT_EQ(day.wakes_at(), day.renews_at) << "there will be nothing tomorrow, either";
  day.limit = 1;
  EXPECT_EQ(day.wakes_at(), day.ends_at);
}

class DayBudgetTest : public WorkTest {
 protected:
  void Spend(std::string id, double dollars, std::string_view at, std::string owner = "ann") {
    store::CostRow cost{
        .id = std::move(id), .owner_id = std::move(owner), .kind = "model", .dollars = dollars};
    cost.at = At(at);
    ASSERT_TRUE(Write([&](Tx& tx) { return tx.Insert(cost); }));
  }
  std::optional<DayBudget> Today(std::string_view now) {
    return Write([&](Tx& tx) { return DayBudgetOf(tx, config_, "ann", At(now)); }).value();
  }
};

TEST_F(DayBudgetTest, FollowsTheClock) {
  config_.budget_action = "pace";
  config_.budget_month_dollars = "30";
  Spend("last month", 100, "2026-10-31T23:59:59Z");
  Spend("somebody else's", 100, "2026-11-10T12:00:00Z", "bob");
  EXPECT_EQ(Today("2026-11-01T08:00:00Z")->limit, 1'000'000);
  // Ten days without work leave more for each of the others.
  EXPECT_EQ(Today("2026-11-11T08:00:00Z")->limit, 1'500'000);
  Spend("a", 0.25, "2026-11-11T08:00:00Z");
  Spend("b", 1.2500005, "2026-11-11T09:00:00Z");
  auto day = Today("2026-11-11T23:59:59Z");
  EXPECT_EQ(day->limit, 1'500'000) << "what is spent today changes today's part in nothing";
  EXPECT_EQ(day->spent, 1'500'001);
  EXPECT_TRUE(day->used_up());
  auto next = Today("2026-11-12T00:00:00Z");
  EXPECT_EQ(next->spent, 0);
  EXPECT_EQ(next->limit, (30'000'000 - 1'500'001) / 19);
  EXPECT_FALSE(next->used_up());
  EXPECT_EQ(Today("2026-12-01T00:00:00Z")->limit, 30'000'000 / 31) << "renewed";
}

TEST_F(DayBudgetTest, IsThereOnlyIfTheBudgetIsSharedOut) {
  config_.budget_month_dollars = "30";
  config_.budget_action = "stop";
  EXPECT_FALSE(Today("2026-11-01T08:00:00Z"));
  config_.budget_action = "pace";
  config_.budget_month_dollars = "0";
  EXPECT_FALSE(Today("2026-11-01T08:00:00Z"));
}

}  // namespace
}  // namespace caisson::work
