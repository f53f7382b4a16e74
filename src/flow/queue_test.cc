// Runs that wait for their start: how long they may, and how many of a repository begin.
#include <gmock/gmock.h>

#include "flow/flow_fixture.h"
#include "flow/ledger.h"

namespace caisson::flow {
namespace {

using store::Transaction;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class QueueTest : public FlowTest {
 protected:
  QueueTest() { Steps({"one", "two", "clean!"}); }
  // A server of its own on this database, from the settings as they are now.
  Ledger MakeLedger(const std::string& node = "") {
    definitions_ = {{"test", definition_}};
    return Ledger(config_, definitions_, node);
  }
  void Add(Ledger& ledger, const std::string& id, const std::string& repo = "") {
    Write([&](Transaction& tx) {
      return ledger.StartRun(tx,
                             {.id = id, .definition = "test", .owner_id = "ann", .repo_key = repo});
    });
  }
  // "run:step" of what the server takes.
  std::vector<std::string> Claim(Ledger& ledger) {
    std::vector<std::string> taken;
    claimed_ = Write([&](Transaction& tx) { return ledger.Claim(tx, 50); }).value();
    for (const Work& work : claimed_) taken.push_back(work.step.run_id + ":" + work.step.name);
    return taken;
  }
  // The steps that were just taken end well.
  void FinishClaimed(Ledger& ledger) {
    for (const Work& work : claimed_)
      Write([&](Transaction& tx) { return ledger.Finish(tx, work.step, Outcome::Done()); });
  }
  size_t GiveUp(Ledger& ledger) {
    return Write([&](Transaction& tx) { return ledger.GiveUp(tx, 10); }).value();
  }
  static void Pass(Ledger& ledger, Time::duration time) {
    ledger.clock().Follow(ledger.clock().Now() + time);
  }

  std::map<std::string, Definition> definitions_;
  std::vector<Work> claimed_;
};
CAISSON_ON_BOTH_DATABASES(QueueTest);

TEST_P(QueueTest, ARunThatWaitsTooLongIsGivenUp) {
  config_.flow_workers = 1;
  Hangs("one");
  StartRun(MakeEngine(), {.id = "works"});  // it may wait for ever
  config_.flow_queue_ttl_s = 1;
  Engine& engine = StartEngine();
  UntilHanging(1);
  StartRun(engine, {.id = "waits"});
  UntilRun("waits", "dead");  // although the only lane is busy
  store::RunRow run = Run("waits");
  EXPECT_THAT(run.error, HasSubstr("flow_queue_ttl_s"));
  EXPECT_EQ(run.error_class, "transient");
  EXPECT_FALSE(run.started_at);
  EXPECT_TRUE(run.finished_at);
  EXPECT_FALSE(run.queue_expires_at);
  EXPECT_EQ(Step("waits", "one").error, run.error);
  EXPECT_THAT(calls_, ElementsAre("one")) << "there was nothing to clean up";
  EXPECT_THAT(Events("waits"), ElementsAre(":queued", "one:failed", ":dead"));
  Release();
  UntilRun("works", "succeeded");
}

TEST_P(QueueTest, OneThatWasGivenUpCanBeRetried) {
  config_.flow_queue_ttl_s = 3600;
  Engine& engine = MakeEngine();
  StartRun(engine, {.id = "r1"});
  Ledger late = MakeLedger();
  Pass(late, 2h);
  ASSERT_EQ(GiveUp(late), 1);
  ASSERT_TRUE(Redrive(engine, "r1"));
  EXPECT_EQ(Run("r1").state, "queued");
  EXPECT_GT(Run("r1").queue_expires_at, Now() + 30min) << "it has its time again";
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  UntilRun("r1", "succeeded");
}

TEST_P(QueueTest, TheTimeGoesOnWhileNoServerIsThere) {
  config_.flow_queue_ttl_s = 60;
  Ledger before = MakeLedger();
  Add(before, "r1");
  config_.flow_queue_ttl_s = 0;
  Ledger after = MakeLedger("other");
  EXPECT_EQ(GiveUp(after), 0);
  Pass(after, 2min);
  EXPECT_THAT(Claim(after), IsEmpty()) << "what is too late is not begun any more";
  EXPECT_EQ(GiveUp(after), 1) << "it was told that time";
  EXPECT_EQ(Run("r1").state, "dead");
  Add(after, "r2");
  EXPECT_FALSE(Run("r2").queue_expires_at);
  EXPECT_EQ(GiveUp(after), 0);
}

TEST_P(QueueTest, ARunThatHasBegunIsNotGivenUp) {
  config_.flow_queue_ttl_s = 60;
  Ledger ledger = MakeLedger();
  Add(ledger, "r1");
  EXPECT_GT(Run("r1").queue_expires_at, Run("r1").created_at + 59s);
  EXPECT_THAT(Claim(ledger), ElementsAre("r1:one"));
  EXPECT_FALSE(Run("r1").queue_expires_at);
  Write([&](Transaction& tx) { return ledger.HandBack(tx); });
  Pass(ledger, 1h);
  EXPECT_EQ(GiveUp(ledger), 0);
  EXPECT_THAT(Claim(ledger), ElementsAre("r1:one"));
}

TEST_P(QueueTest, ARunThatWasCanceledEndsAsCanceled) {
  config_.flow_queue_ttl_s = 60;
  Ledger ledger = MakeLedger();
  Add(ledger, "r1");
  Write([&](Transaction& tx) { return ledger.Cancel(tx, "r1", "enough"); });
  EXPECT_FALSE(Run("r1").queue_expires_at);
  Pass(ledger, 1h);
  EXPECT_EQ(GiveUp(ledger), 0);
  EXPECT_THAT(Claim(ledger), ElementsAre("r1:clean"));
  FinishClaimed(ledger);
  EXPECT_EQ(Run("r1").state, "canceled");
}

TEST_P(QueueTest, NoMoreRunsOfARepositoryBeginThanMay) {
  config_.flow_starts_per_repo = 2;
  Ledger ledger = MakeLedger("a"), other = MakeLedger("b");
  for (const char* id : {"a1", "a2", "a3", "a4"}) Add(ledger, id, "a");
  Add(ledger, "b1", "b");
  for (const char* id : {"n1", "n2", "n3"}) Add(ledger, id);
  EXPECT_THAT(Claim(ledger),
              UnorderedElementsAre("a1:one", "a2:one", "b1:one", "n1:one", "n2:one", "n3:one"));
  FinishClaimed(ledger);
  EXPECT_EQ(Claim(ledger).size(), 6u) << "those that have begun go on";
  EXPECT_THAT(Claim(other), IsEmpty()) << "the rate is one of all servers";
  EXPECT_EQ(Run("a3").state, "queued");
  Pass(other, 61s);
  EXPECT_THAT(Claim(other), Contains("a3:one"));
  EXPECT_EQ(Run("a4").state, "running");
}

TEST_P(QueueTest, WhatIsCanceledBeginsNothing) {
  config_.flow_starts_per_repo = 1;
  Ledger ledger = MakeLedger();
  for (const char* id : {"r1", "r2", "r3"}) Add(ledger, id, "a");
  EXPECT_THAT(Claim(ledger), ElementsAre("r1:one"));
  Write([&](Transaction& tx) { return ledger.Cancel(tx, "r2", "enough"); });
  EXPECT_THAT(Claim(ledger), ElementsAre("r2:clean")) << "it waits for no turn";
  FinishClaimed(ledger);
  EXPECT_EQ(Run("r2").state, "canceled");
  EXPECT_FALSE(Run("r2").started_at);
  Pass(ledger, 61s);
  EXPECT_THAT(Claim(ledger), Contains("r3:one"));
}

TEST_P(QueueTest, TheNextBeginsByItself) {
  config_.flow_starts_per_repo = 1;
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1", .repo_key = "a"});
  UntilRun("r1", "succeeded");
  StartRun(engine, {.id = "r2", .repo_key = "a"});
  StartRun(engine, {.id = "r3", .repo_key = "b"});
  UntilRun("r3", "succeeded");
  EXPECT_EQ(Run("r2").state, "queued");
  // As if the minute had passed. Nobody wakes the engine.
  Write([&](Transaction& tx) {
    return tx.Set(store::Select<store::RunRow>().Eq(&store::RunRow::id, "r1"),
                  {store::Assign(&store::RunRow::started_at, Now() - 2min)});
  });
  UntilRun("r2", "succeeded");
}

}  // namespace
}  // namespace caisson::flow
