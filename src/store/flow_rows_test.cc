#include "store/flow_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "store/account_rows.h"
#include "store/store.h"
#include "store/testing.h"

namespace caisson::store {
namespace {

using namespace std::chrono_literals;

class FlowRowsTest : public testing::DatabaseTest {
 protected:
  template <class Job>
  auto Write(Job job) {
    auto done = caisson::testing::Await(io_, store_->Write(std::move(job)));
    EXPECT_TRUE(done) << done.error().message();
    return done;
  }

  FlowRowsTest() {
    store_ = OpenStore(database_.url(), io_.get_executor()).value();
    for (const char* user : {"ann", "bob"})
      Write([user](Transaction& tx) {
        return tx.Insert(UserRow{.id = user, .name = user, .role = "member", .created_at = Now()});
      });
  }
  ~FlowRowsTest() override { EXPECT_TRUE(caisson::testing::Await(io_, store_->Close())); }

  // A run with one step of the same id.
  void Add(RunRow run, StepRow step = {}) {
    run.definition = "task";
    run.created_at = now_;
    step.id = run.id;
    step.run_id = run.id;
    step.name = "only";
    step.priority = run.priority;
    if (step.run_at == Time()) step.run_at = now_ + std::chrono::milliseconds(added_);
    ++added_;
    Write([&](Transaction& tx) -> Status {
      TRY(tx.Insert(run));
      return tx.Insert(step);
    });
  }
  ClaimQuery Query() { return {.lease_owner = "me", .now = now_ + 1h, .lease_until = now_ + 2h}; }
  std::optional<StepRow> Claim(const ClaimQuery& query) {
    return Write([&](Transaction& tx) { return ClaimStep(tx, query); }).value();
  }
  // The id of what is claimed, "" if nothing is.
  std::string ClaimId(const ClaimQuery& query) {
    std::optional<StepRow> step = Claim(query);
    return step ? step->id : "";
  }
  std::optional<Time> NextTime() {
    return Write([](Transaction& tx) { return NextStepTime(tx); }).value();
  }

  std::unique_ptr<Store> store_;
  Time now_ = Now();
  int added_ = 0;
};
CAISSON_ON_BOTH_DATABASES(FlowRowsTest);

TEST_P(FlowRowsTest, AClaimIsALeaseWithANewFence) {
  Add({.id = "r1", .owner_id = "ann"});
  std::optional<StepRow> step = Claim(Query());
  ASSERT_TRUE(step);
  EXPECT_EQ(step->state, "running");
  EXPECT_EQ(step->attempt, 1);
  EXPECT_EQ(step->fence, 1);
  EXPECT_EQ(step->lease_owner, "me");
  EXPECT_EQ(step->lease_until, now_ + 2h);
  EXPECT_EQ(step->started_at, now_ + 1h);
  EXPECT_EQ(ClaimId(Query()), "");
}

TEST_P(FlowRowsTest, AnEndedLeaseIsTakenOver) {
  Add({.id = "r1", .owner_id = "ann"});
  ASSERT_EQ(ClaimId(Query()), "r1");
  ClaimQuery later = Query();
  later.now = now_ + 2h;
  later.lease_until = now_ + 3h;
  later.lease_owner = "other";
  std::optional<StepRow> step = Claim(later);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->fence, 2);
  EXPECT_EQ(step->attempt, 2);
  EXPECT_EQ(step->lease_owner, "other");
  EXPECT_EQ(step->started_at, now_ + 1h);
}

TEST_P(FlowRowsTest, OnlyWhatIsDueIsClaimed) {
  Add({.id = "later", .owner_id = "ann"}, {.run_at = now_ + 2h});
  Add({.id = "waits", .owner_id = "ann"}, {.state = "waiting", .wait_key = "k"});
  Add({.id = "waits2", .owner_id = "ann"}, {.state = "waiting", .wait_until = now_ + 2h});
  Add({.id = "done", .owner_id = "ann"}, {.state = "done"});
  EXPECT_EQ(ClaimId(Query()), "");
  Add({.id = "overdue", .owner_id = "ann"}, {.state = "waiting", .wait_until = now_ + 1min});
  EXPECT_EQ(ClaimId(Query()), "overdue");
}

TEST_P(FlowRowsTest, PriorityThenUsersInTurnThenAge) {
  for (const char* id : {"a1", "a2", "a3"}) Add({.id = id, .owner_id = "ann"});
  Add({.id = "a4", .owner_id = "ann", .priority = 5});
  Add({.id = "b1", .owner_id = "bob"});
  std::string order;
  for (int i = 0; i < 5; ++i) order += ClaimId(Query()) + " ";
  EXPECT_EQ(order, "a4 b1 a1 a2 a3 ");
}

TEST_P(FlowRowsTest, LimitsCountLiveLeasesOfAKey) {
  Add({.id = "r1", .owner_id = "ann", .repo_key = "repo", .agent_key = "x", .user_key = "ann"});
  Add({.id = "r2", .owner_id = "ann", .repo_key = "repo", .agent_key = "y", .user_key = "bob"});
  Add({.id = "r3", .owner_id = "ann", .repo_key = "other", .agent_key = "x", .user_key = "cy"});
  Add({.id = "r4", .owner_id = "ann", .repo_key = "third", .agent_key = "z", .user_key = "ann"});
  ClaimQuery query = Query();
  query.max_per_repo = query.max_per_agent = query.max_per_user = 1;
  EXPECT_EQ(ClaimId(query), "r1");
  EXPECT_EQ(ClaimId(query), "");  // each of the others shares a key with it
  Write([](Transaction& tx) {
    return tx.Set(Select<StepRow>().Eq(&StepRow::id, "r1"), {Assign(&StepRow::state, "done")});
  });
  EXPECT_EQ(ClaimId(query), "r2");
  EXPECT_EQ(ClaimId(query), "r3");
  EXPECT_EQ(ClaimId(query), "r4");
}

TEST_P(FlowRowsTest, RunsWithoutAKeyHaveNoLimit) {
  for (const char* id : {"r1", "r2"}) Add({.id = id, .owner_id = "ann"});
  ClaimQuery query = Query();
  query.max_per_repo = query.max_per_agent = query.max_per_user = 1;
  EXPECT_EQ(ClaimId(query), "r1");
  EXPECT_EQ(ClaimId(query), "r2");
}

TEST_P(FlowRowsTest, RunsOfARepositoryBeginAtARate) {
  Add({.id = "old", .owner_id = "ann", .repo_key = "repo", .started_at = now_ - 1h});
  Add({.id = "r1", .owner_id = "ann", .repo_key = "repo"});
  Add({.id = "r2", .owner_id = "ann", .repo_key = "other"});
  Add({.id = "r3", .owner_id = "ann"});
  ClaimQuery query = Query();
  query.max_starts_per_repo = 1;
  query.starts_since = now_ - 2h;
  EXPECT_EQ(ClaimId(query), "old") << "it began already, this is its next step";
  EXPECT_EQ(ClaimId(query), "r2");
  EXPECT_EQ(ClaimId(query), "r3");
  EXPECT_EQ(ClaimId(query), "");
  query.starts_since = now_ - 1min;
  EXPECT_EQ(ClaimId(query), "r1");
}

TEST_P(FlowRowsTest, RunsThatCameTooLateAreNotClaimed) {
  Add({.id = "late", .owner_id = "ann", .queue_expires_at = now_ + 30min});
  Add({.id = "early", .owner_id = "ann", .queue_expires_at = now_ + 2h});
  EXPECT_EQ(ClaimId(Query()), "early");
  EXPECT_EQ(ClaimId(Query()), "");
  EXPECT_EQ(Write([](Transaction& tx) { return NextQueueExpiry(tx); }).value(), now_ + 30min);
}

TEST_P(FlowRowsTest, KnowsWhenTheNextIsDue) {
  EXPECT_EQ(NextTime(), std::nullopt);
  Add({.id = "forever", .owner_id = "ann"}, {.state = "waiting", .wait_key = "k"});
  EXPECT_EQ(NextTime(), std::nullopt);
  Add({.id = "wait", .owner_id = "ann"}, {.state = "waiting", .wait_until = now_ + 3h});
  EXPECT_EQ(NextTime(), now_ + 3h);
  Add({.id = "ready", .owner_id = "ann"}, {.run_at = now_ + 1min});
  EXPECT_EQ(NextTime(), now_ + 1min);
  ASSERT_EQ(ClaimId(Query()), "ready");
  EXPECT_EQ(NextTime(), now_ + 2h);
}

// Claims until there is nothing left, and notes what it got.
Task<void> ClaimAll(Store& store, ClaimQuery query, std::vector<std::string>& claimed) {
  for (;;) {
    auto step = co_await store.Write([query](Transaction& tx) { return ClaimStep(tx, query); });
    EXPECT_TRUE(step) << step.error().message();
    if (!step || !*step) co_return;
    claimed.push_back((*step)->id);
  }
}

TEST_P(FlowRowsTest, ManyClaimersNeverGetTheSame) {
  constexpr int kSteps = 120;
  for (int i = 0; i < kSteps; ++i) Add({.id = "r" + std::to_string(i), .owner_id = "ann"});
  // Two servers on one database, each with many workers.
  auto other = OpenStore(database_.url(), io_.get_executor()).value();
  std::vector<std::string> claimed;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 16; ++i)
    group.Spawn("claim", ClaimAll(i % 2 ? *store_ : *other, Query(), claimed));
  EXPECT_TRUE(caisson::testing::Await(io_, group.Join(60s)));
  EXPECT_EQ(claimed.size(), kSteps);
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), kSteps);
}

TEST_P(FlowRowsTest, ManyClaimersKeepToALimit) {
  for (int i = 0; i < 30; ++i)
    Add({.id = "r" + std::to_string(i), .owner_id = "ann", .repo_key = "one"});
  auto other = OpenStore(database_.url(), io_.get_executor()).value();
  ClaimQuery query = Query();
  query.max_per_repo = 3;
  std::vector<std::string> claimed;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 10; ++i)
    group.Spawn("claim", ClaimAll(i % 2 ? *store_ : *other, query, claimed));
  EXPECT_TRUE(caisson::testing::Await(io_, group.Join(60s)));
  EXPECT_EQ(claimed.size(), 3u);
}

TEST_P(FlowRowsTest, RunsOfAnotherServerAreLeftToIt) {
  Add({.id = "r1", .owner_id = "ann", .node = "a"});
  Add({.id = "r2", .owner_id = "ann", .node = "b"});
  Write([this](Transaction& tx) -> Status {
    TRY(tx.Insert(NodeRow{.id = "a", .seen_at = now_}));
    return tx.Insert(NodeRow{.id = "b", .seen_at = now_ - 1h});
  });
  ClaimQuery query = Query();
  query.node = "c";
  EXPECT_EQ(ClaimId(query), "");
  query.lost_before = now_ - 2h;
  EXPECT_EQ(ClaimId(query), "");
  query.lost_before = now_ - 30min;
  EXPECT_EQ(ClaimId(query), "r2") << "b was not seen for an hour";
  EXPECT_EQ(ClaimId(query), "");
  query.node = "a";
  EXPECT_EQ(ClaimId(query), "r1");
}

}  // namespace
}  // namespace caisson::store
