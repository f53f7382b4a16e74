#include <gmock/gmock.h>

#include "flow/flow_fixture.h"

namespace caisson::flow {
namespace {

using ::testing::ElementsAre;

class CancelTest : public FlowTest {
 protected:
  std::vector<std::string> StatesOf(const std::string& run) {
    std::vector<std::string> states;
    for (const StepDefinition& step : definition_.steps)
      states.push_back(step.name + ":" + Step(run, step.name).state);
    return states;
  }
  // Comes to its end although it is canceled.
  static Task<Outcome> Finish(CancelTest* test, StepContext context) {
    (void)co_await Hang(test, std::move(context));
    co_return Outcome::Done();
  }
};
CAISSON_ON_BOTH_DATABASES(CancelTest);

TEST_P(CancelTest, ARunThatHasNotBegunOnlyCleansUp) {
  Steps({"one", "two", "clean!"});
  Engine& engine = MakeEngine();
  StartRun(engine, {.id = "r1"});
  EXPECT_TRUE(Cancel(engine, "r1", "changed my mind"));
  EXPECT_FALSE(Cancel(engine, "r1"));
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  UntilRun("r1", "canceled");
  EXPECT_THAT(calls_, ElementsAre("clean"));
  EXPECT_EQ(Run("r1").cancel_reason, "changed my mind");
  EXPECT_EQ(Step("r1", "one").state, "canceled");
  EXPECT_FALSE(Cancel(engine, "r1"));
  EXPECT_EQ(Redrive(engine, "r1").error().code(), Code::kFailedPrecondition);
}

TEST_P(CancelTest, ARunWithoutCleanUpEndsAtOnce) {
  Steps({"one"});
  Engine& engine = MakeEngine();
  StartRun(engine, {.id = "r1"});
  EXPECT_TRUE(Cancel(engine, "r1"));
  EXPECT_EQ(Run("r1").state, "canceled");
}

TEST_P(CancelTest, AStepThatRunsIsToldAtOnce) {
  Steps({"one", "two", "clean!"});
  Hangs("one");
  Engine& engine = StartEngine();  // whose heartbeat is 20 s away
  StartRun(engine, {.id = "r1"});
  UntilHanging(1);
  EXPECT_TRUE(Cancel(engine, "r1"));
  UntilRun("r1", "canceled");
  EXPECT_THAT(told_to_end_, ElementsAre("one"));
  EXPECT_THAT(calls_, ElementsAre("one", "clean"));
}

TEST_P(CancelTest, AStepOnAnotherServerIsToldByItsHeartbeat) {
  config_.flow_lease_ms = 1'500;
  Steps({"one", "clean!"});
  Hangs("one");
  Engine& runs = StartEngine();
  StartRun(runs, {.id = "r1"});
  UntilHanging(1);
  Engine& other = MakeEngine();
  EXPECT_TRUE(Cancel(other, "r1"));
  UntilRun("r1", "canceled");
  EXPECT_THAT(told_to_end_, ElementsAre("one"));
}

TEST_P(CancelTest, AStepThatIsDoneNeverthelessIsDone) {
  Steps({"one", "two", "clean!"});
  handlers_["one"] = [this](StepContext context) { return Finish(this, std::move(context)); };
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilHanging(1);
  EXPECT_TRUE(Cancel(engine, "r1"));
  UntilRun("r1", "canceled");
  EXPECT_THAT(StatesOf("r1"), ElementsAre("one:done", "two:ready", "clean:done"));
  EXPECT_EQ(Step("r1", "two").id, "") << "it was never added";
}

TEST_P(CancelTest, AWaitIsOver) {
  Steps({"ask", "clean!"});
  On("ask", [](const StepContext&) { return Outcome::Wait("answer", 1h); });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "waiting");
  EXPECT_TRUE(Cancel(engine, "r1"));
  UntilRun("r1", "canceled");
  EXPECT_FALSE(Signal(engine, "answer", {}));
  EXPECT_THAT(StatesOf("r1"), ElementsAre("ask:canceled", "clean:done"));
}

TEST_P(CancelTest, ARetryIsNotWaitedFor) {
  Steps({"one", "clean!"});
  On("one", [](const StepContext&) {
    Outcome outcome = Outcome::Failed(Error(Code::kUnavailable, "later"));
    outcome.retry_after = 1h;
    return outcome;
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  Until([&] { return Step("r1", "one").error == "later"; });
  EXPECT_TRUE(Cancel(engine, "r1"));
  UntilRun("r1", "canceled");
  EXPECT_THAT(calls_, ElementsAre("one", "clean"));
}

TEST_P(CancelTest, CleaningUpIsNotInterrupted) {
  Steps({"one", "clean!"});
  Hangs("clean");
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilHanging(1);
  EXPECT_TRUE(Cancel(engine, "r1"));
  Release();
  UntilRun("r1", "canceled");
  EXPECT_THAT(told_to_end_, ElementsAre());
  EXPECT_THAT(StatesOf("r1"), ElementsAre("one:done", "clean:done"));
}

TEST_P(CancelTest, IsDoneByTheNextServerIfThisOneDies) {
  config_.flow_lease_ms = 1'500;
  Steps({"one", "two", "clean!"});
  Hangs("one");
  Engine& first = StartEngine();
  StartRun(first, {.id = "r1"});
  UntilHanging(1);
  EXPECT_TRUE(Write([&](store::Transaction& tx) { return first.Cancel(tx, "r1", "no"); }).value());
  Destroy(first);
  StartEngine();
  UntilRun("r1", "canceled");
  EXPECT_THAT(calls_, ElementsAre("one", "clean"));
  EXPECT_EQ(Step("r1", "one").state, "canceled");
}

}  // namespace
}  // namespace caisson::flow
