// Servers that die, stop, stand still, or whose clock is wrong.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "flow/crash_point.h"
#include "flow/flow_fixture.h"
#include "flow/ledger.h"
#include "flow/owner.h"

namespace caisson::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TakeoverTest : public FlowTest {
 protected:
  // The text that a process which has ended by now had for itself.
  static std::string DeadOwner() {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_t child = fork();
    if (child == 0) {
      std::string owner = MakeOwner();
      _exit(write(ends[1], owner.data(), owner.size()) < 0);
    }
    char text[200];
    ssize_t size = read(ends[0], text, sizeof(text));
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    return std::string(text, static_cast<size_t>(size));
  }
  static Task<Outcome> WaitFor(Condition* condition, size_t* begun) {
    ++*begun;
    co_await condition->Wait(30s);
    co_return Outcome::Done({{"by", "frozen"}});
  }
};
CAISSON_ON_BOTH_DATABASES(TakeoverTest);

TEST_P(TakeoverTest, AServerThatStopsGivesItsStepsBack) {
  Steps({"one", "two"});
  Hangs("two");
  Engine& first = StartEngine();
  StartRun(first, {.id = "r1"});
  UntilHanging(1);
  Await(first.Stop());
  store::StepRow step = Step("r1", "two");
  EXPECT_EQ(step.state, "ready");
  EXPECT_EQ(step.attempt, 0);
  EXPECT_THAT(told_to_end_, ElementsAre()) << "the run was not canceled";
  Release();
  StartEngine();
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("one", "two", "two"));
  EXPECT_EQ(Run("r1").result, R"({"hung":1})");
}

TEST_P(TakeoverTest, AnEngineThatStoppedTakesNothing) {
  Steps({"one"});
  Engine& engine = StartEngine();
  Await(engine.Stop());
  StartRun(engine, {.id = "r1"});
  Await(SleepFor(20ms));
  EXPECT_EQ(Run("r1").state, "queued");
}

TEST_P(TakeoverTest, AfterACrashAnotherServerGoesOnWhenTheLeaseEnds) {
  config_.flow_lease_ms = 2'000;
  Steps({"one", "two", "three"});
  Hangs("two");
  Engine& first = StartEngine();
  StartRun(first, {.id = "r1"});
  UntilHanging(1);
  Destroy(first);
  Until([&] { return hanging_ == 0; });
  EXPECT_EQ(Step("r1", "two").state, "running") << "a crash writes nothing";
  Release();
  StartEngine();
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("one", "two", "two", "three"));
  EXPECT_EQ(Step("r1", "two").fence, 2);
}

TEST_P(TakeoverTest, AProcessThatIsGoneIsNotWaitedFor) {
  Steps({"one"});
  Engine& engine = MakeEngine();  // its lease is a minute
  StartRun(engine, {.id = "r1"});
  std::string owner = DeadOwner();
  EXPECT_TRUE(IsKnownDead(owner));
  EXPECT_FALSE(IsKnownDead(MakeOwner()));
  EXPECT_FALSE(IsKnownDead("another machine"));
  EXPECT_FALSE(IsKnownDead("x" + owner)) << "another boot";
  Write([&](store::Transaction& tx) {
    return store::ClaimStep(tx, {.lease_owner = owner, .now = Now(), .lease_until = Now() + 1h});
  });
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Step("r1", "one").attempt, 2);
}

TEST_P(TakeoverTest, AStepThatKillsItsServersIsDeadInTheEnd) {
  Steps({"bomb", "clean!"});
  config_.flow_attempts = 2;
  Engine& engine = MakeEngine();
  StartRun(engine, {.id = "r1"});
  for (int i = 0; i < 4; ++i)
    Write([&](store::Transaction& tx) -> Status {
      TRY_ASSIGN(auto step,
                 store::ClaimStep(tx, {.lease_owner = "x", .now = Now(), .lease_until = Now()}));
      EXPECT_TRUE(step);
      return {};
    });
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  UntilRun("r1", "dead");
  EXPECT_THAT(Run("r1").error, HasSubstr("was begun 4 times and never came to an end"));
  EXPECT_THAT(calls_, ElementsAre("clean"));
}

TEST_P(TakeoverTest, AServerThatStoodStillWritesTooLate) {
  config_.flow_lease_ms = 2'000;
  Steps({"one", "two"});
  // The one that will stand still: on a loop of its own, which is not run for a while.
  asio::io_context frozen_io;
  auto frozen_store = Open(frozen_io);
  Condition go(frozen_io.get_executor());
  Engine frozen(frozen_io.get_executor(), *frozen_store, config_);
  Definition slow = definition_;
  size_t begun = 0;
  for (StepDefinition& step : slow.steps)
    step.run = [&](StepContext) { return WaitFor(&go, &begun); };
  frozen.Define(slow);
  StartRun(frozen, {.id = "r1"});
  ASSERT_TRUE(testing::Await(frozen_io, frozen.Start()));
  while (begun == 0) testing::Await(frozen_io, SleepFor(1ms));
  StartEngine();
  UntilRun("r1", "succeeded");
  go.Notify();
  while (frozen.numbers().running > 0) testing::Await(frozen_io, SleepFor(1ms));
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(frozen.numbers().done, 0);
  EXPECT_EQ(Step("r1", "one").result, R"({"by":"one"})");
  EXPECT_THAT(calls_, ElementsAre("one", "two"));
  testing::Await(frozen_io, frozen.Stop());
  EXPECT_TRUE(testing::Await(frozen_io, frozen_store->Close()));
}

TEST_P(TakeoverTest, TheFenceRefusesALateOutcome) {
  Steps({"one", "two"});
  std::map<std::string, Definition> definitions{{"test", definition_}};
  Ledger slow(config_, definitions), quick(config_, definitions);
  Write([&](store::Transaction& tx) -> Status {
    TRY(slow.StartRun(tx, {.id = "r1", .definition = "test", .owner_id = "ann"}));
    TRY_ASSIGN(auto first, slow.Claim(tx, 1));
    EXPECT_EQ(first.size(), 1);
    EXPECT_TRUE(quick.Claim(tx, 1)->empty()) << "it is leased";
    quick.clock().Follow(Now() + 2h);  // the lease has ended
    TRY_ASSIGN(auto second, quick.Claim(tx, 1));
    EXPECT_EQ(second.size(), 1);
    EXPECT_GT(second[0].step.fence, first[0].step.fence);
    EXPECT_EQ(slow.Finish(tx, first[0].step, Outcome::Done({{"by", "slow"}})), Verdict::kLate);
    EXPECT_EQ(quick.Finish(tx, second[0].step, Outcome::Done({{"by", "quick"}})), Verdict::kDone);
    EXPECT_EQ(quick.Finish(tx, second[0].step, Outcome::Done()), Verdict::kLate) << "only once";
    TRY_ASSIGN(Pulse pulse, slow.Beat(tx, Now(), {{first[0].step.id, first[0].step.fence}}));
    EXPECT_THAT(pulse.lost, ElementsAre(first[0].step.id));
    return {};
  });
  EXPECT_EQ(Step("r1", "one").result, R"({"by":"quick"})");
}

TEST_P(TakeoverTest, AClockThatWasSetBackStallsNothing) {
  Steps({"one", "two"});
  Engine& engine = MakeEngine();
  StartRun(engine, {.id = "r1"});
  // As a server would have left it whose clock was two hours ahead.
  Time ahead = Now() + 2h;
  Write([&](store::Transaction& tx) -> Status {
    TRY(tx.Set(store::Select<store::RunRow>(), {store::Assign(&store::RunRow::created_at, ahead)}));
    TRY(tx.Set(store::Select<store::StepRow>(), {store::Assign(&store::StepRow::run_at, ahead)}));
    return {};
  });
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  UntilRun("r1", "succeeded");
  EXPECT_GE(*Run("r1").finished_at, ahead);
}

TEST(ClockTest, NeverGoesBack) {
  Clock clock;
  Time begin = clock.Now();
  EXPECT_LE(begin, Now() + 1s);
  clock.Follow(begin - 1h);
  EXPECT_GE(clock.Now(), begin);
  clock.Follow(begin + 1h);
  EXPECT_GE(clock.Now(), begin + 1h);
  EXPECT_LE(clock.Now(), Now() + 1h + 1s);
}

TEST(CrashPointTest, KillsTheProcessAtItsPlaceOnly) {
  setenv("CAISSON_FLOW_CRASH_AT", "push:after_effect", 1);
  CrashPoint point;
  unsetenv("CAISSON_FLOW_CRASH_AT");
  EXPECT_TRUE(point.set());
  EXPECT_FALSE(CrashPoint().set());
  point.Reached("push", "after_claim");
  point.Reached("clone", "after_effect");
  EXPECT_EXIT(point.Reached("push", "after_effect"), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace caisson::flow
