#include "build/queue.h"

#include "build/build_fixture.h"

namespace caisson::build {
namespace {

using Changes = std::vector<FileChange>;

NewBuild APage(const std::string& project = "shop") {
  return {.project = project,
          .files = Changes{{.path = "index.html", .new_content = "<h1>one</h1>"}}};
}

// Two at once per user, one per project, four a day, one iteration.
class QueueTest : public BuildTest {
 protected:
  QueueTest()
      : BuildTest([](Config& config) {
          config.build_tiers = "small=2/1/4/1/0, large=0/0/0/0/5";
          config.build_tier = "small";
          config.build_queue = 3;
        }) {}
  void Slow() { workbench_.open_takes = std::chrono::seconds(60); }
};

TEST_F(QueueTest, OverTheDailyLimitABuildIsScheduled) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Await(Create(APage())->row.id).state, "ready");
  auto fifth = Create(APage());
  ASSERT_TRUE(fifth) << fifth.error().message();
  EXPECT_EQ(fifth->row.state, "scheduled");
  EXPECT_EQ(fifth->row.scheduled_for, NextDay(Now()));
  EXPECT_GT(fifth->turn.wait_s, 0);
  EXPECT_EQ(fifth->usage.used, 4);
  // Another user has a day of their own.
  EXPECT_NE(Create(APage(), "bob")->row.state, "scheduled");
  // When its day has come it is built.
  ASSERT_TRUE(Write([id = fifth->row.id](Tx& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
    row.scheduled_for = Now() - std::chrono::seconds(1);
    return tx.Update(row);
  }));
  EXPECT_TRUE(Wait(previews_->Care()));
  EXPECT_EQ(Await(fifth->row.id).state, "ready");
}

TEST_F(QueueTest, WhoWaitsHasAPosition) {
  Slow();
  auto first = Create(APage("a")), second = Create(APage("b"));
  EXPECT_FALSE(first->row.run_id.empty());
  EXPECT_FALSE(second->row.run_id.empty());
  auto third = Create(APage("c"));
  EXPECT_EQ(third->row.state, "queued");
  EXPECT_TRUE(third->row.run_id.empty());
  EXPECT_EQ(third->turn.position, 1);
  EXPECT_GT(third->turn.wait_s, 0);
  // A place becomes free.
  ASSERT_TRUE(Wait(builds_->Cancel("ann", first->row.id, "")));
  workbench_.open_takes = std::chrono::milliseconds(0);
  EXPECT_EQ(Await(third->row.id).state, "ready");
}

TEST_F(QueueTest, OneBuildPerProjectAtOnce) {
  Slow();
  auto first = Create(APage("a")), second = Create(APage("a"));
  EXPECT_FALSE(first->row.run_id.empty());
  EXPECT_TRUE(second->row.run_id.empty());
  ASSERT_TRUE(Wait(builds_->Cancel("ann", second->row.id, "")));
  EXPECT_EQ(Row(second->row.id).error_category, "canceled");
  ASSERT_TRUE(Wait(builds_->Cancel("ann", first->row.id, "")));
  Await(first->row.id);
}

TEST_F(QueueTest, ALargerTierComesFirst) {
  Slow();
  ASSERT_TRUE(Write([](Tx& tx) -> Status {
    TRY_ASSIGN(auto bob, tx.Need<store::UserRow>("bob", "user"));
    bob.tier = "large";
    return tx.Update(bob);
  }));
  auto running = Create(APage("a")), waiting = Create(APage("a"));
  auto theirs = Create(APage("a"), "bob");
  EXPECT_FALSE(theirs->row.run_id.empty());
  EXPECT_EQ(theirs->row.tier, "large");
  EXPECT_EQ(theirs->usage.limit, 0);
  for (const auto* view : {&running, &waiting, &theirs})
    ASSERT_TRUE(Wait(builds_->Cancel("", (*view)->row.id, "")));
  Await(running->row.id);
  Await(theirs->row.id);
}

TEST_F(QueueTest, AFullQueueSaysWhenToComeAgain) {
  Slow();
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    auto made = Create(APage("a"));
    ASSERT_TRUE(made) << made.error().message();
    ids.push_back(made->row.id);
  }
  auto refused = Create(APage("a"), "bob");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_NE(refused.error().message().find("minutes"), std::string::npos);
  for (const std::string& id : ids) (void)Wait(builds_->Cancel("ann", id, ""));
  Await(ids.front());
}

TEST_F(QueueTest, StartsPerMinuteAreCounted) {
  config_.start_rate_limit = 1;
  EXPECT_FALSE(Create({.files = Changes{{.path = "app.jsx", .new_content = "1"}}}));  // counts not
  auto first = Create(APage());
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(Create(APage()).error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(Create(APage(), "bob"));
  EXPECT_EQ(Await(first->row.id).state, "ready");
}

TEST_F(QueueTest, IterationsNeedSomebodysConfirmation) {
  BuildRow first = Await(Create(APage())->row.id);
  NewBuild change = APage();
  change.parent_id = first.id;
  BuildRow second = Await(Create(change)->row.id);
  EXPECT_EQ(second.iterations_used, 1);
  change.parent_id = second.id;
  auto refused = Create(change);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Wait(builds_->Confirm("ann", second.id)));
  EXPECT_TRUE(Create(change));
}

}  // namespace
}  // namespace caisson::build
