#include "work/costs.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class CostsTest : public WorkTest {
 protected:
  Status Record(store::CostRow cost) {
    cost.owner_id = "ann";
    if (cost.at == Time()) cost.at = Now();
    return Write([this, cost](Tx& tx) {
      Platform all = platform();
      return RecordCost(tx, all, cost);
    });
  }
};

TEST(StartOf, KnowsDaysWeeksAndMonths) {
  Time time = ParseTime("2026-11-15T16:14:42Z").value();  // a Sunday
  EXPECT_EQ(FormatTime(StartOf("day", time)), "2026-11-15T00:00:00Z");
  EXPECT_EQ(FormatTime(StartOf("week", time)), "2026-11-09T00:00:00Z");
  EXPECT_EQ(FormatTime(StartOf("month", time)), "2026-11-01T00:00:00Z");
  EXPECT_EQ(FormatTime(StartOf("week", StartOf("week", time))), "2026-11-09T00:00:00Z");
}

TEST_F(CostsTest, AreRecordedOnceAndSummed) {
  EXPECT_DOUBLE_EQ(SandboxDollars(config_, 3'600'000), 0.015);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(Record(
        {.id = "a", .sandbox_id = "s1", .kind = "sandbox", .sandbox_ms = 1000, .dollars = 0.5}));
  ASSERT_TRUE(Record(
      {.id = "b", .kind = "model", .model = "m", .tokens_in = 10, .tokens_out = 2, .dollars = 2}));
  EXPECT_EQ(Events("cost_recorded").size(), 2);
  EXPECT_EQ(Wait(work_->costs.List("ann", {.sandbox_id = "s1"}))->total, 1);
  auto by_kind = Wait(work_->costs.Stats("ann", {}, "kind")).value();
  ASSERT_EQ(by_kind.size(), 2);
  EXPECT_EQ(by_kind[0].key, "model");
  EXPECT_EQ(by_kind[0].tokens_in, 10);
  EXPECT_EQ(by_kind[1].sandbox_ms, 1000);
  auto by_user = Wait(work_->costs.Stats("ann", {}, "user")).value();
  EXPECT_DOUBLE_EQ(by_user.at(0).dollars, 2.5);
  EXPECT_TRUE(Wait(work_->costs.Stats("bob", {}, "user"))->empty());
  EXPECT_EQ(Wait(work_->costs.Stats("ann", {}, "colour")).error().code(), Code::kInvalidArgument);
}

TEST_F(CostsTest, AreSummedPerPeriod) {
  ASSERT_TRUE(Record({.id = "now", .kind = "model", .dollars = 1}));
  ASSERT_TRUE(Record({.id = "yesterday",
                      .kind = "model",
                      .dollars = 2,
                      .at = StartOf("day", Now()) - std::chrono::hours(1)}));
  ASSERT_TRUE(Record({.id = "long ago",
                      .kind = "model",
                      .dollars = 4,
                      .at = Now() - std::chrono::hours(24 * 400)}));
  auto days = Wait(work_->costs.Summary("ann", "day", 7)).value();
  ASSERT_EQ(days.size(), 7);
  EXPECT_DOUBLE_EQ(days[6].dollars, 1);
  EXPECT_DOUBLE_EQ(days[5].dollars, 2);
  EXPECT_DOUBLE_EQ(days[4].dollars, 0);
  double sum = 0;
  for (const CostSum& month : Wait(work_->costs.Summary("ann", "month", 24)).value())
    sum += month.dollars;
  EXPECT_DOUBLE_EQ(sum, 7);
}

TEST_F(CostsTest, CrossingAMarkIsToldOnce) {
  config_.budget_month_dollars = "10";
  ASSERT_TRUE(Record({.id = "a", .kind = "model", .dollars = 7}));
  EXPECT_EQ(Events("budget_warning").size(), 0);
  ASSERT_TRUE(Record({.id = "b", .kind = "model", .dollars = 1}));
  ASSERT_TRUE(Record({.id = "c", .kind = "model", .dollars = 1}));
  EXPECT_EQ(Events("budget_warning").size(), 1);
  ASSERT_TRUE(Record({.id = "d", .kind = "model", .dollars = 1}));
  auto told = DataOf("budget_warning");
  ASSERT_EQ(told.size(), 2);
  EXPECT_EQ(told[1].at("percent"), 100);
  auto budget = Wait(work_->costs.GetBudget("ann")).value();
  EXPECT_TRUE(budget.used_up());
}

}  // namespace
}  // namespace caisson::work
