#include <gmock/gmock.h>

#include "flow/flow_fixture.h"

namespace caisson::flow {
namespace {

using ::testing::ElementsAre;

class WaitsTest : public FlowTest {
 protected:
  // The step "ask" waits for `key`, and is done with what came.
  void Asks(std::chrono::milliseconds timeout, std::string key = "answer") {
    On("ask", [=](const StepContext& context) {
      if (context.signal.empty()) return Outcome::Wait(key, timeout);
      return Outcome::Done(context.signal);
    });
  }
};
CAISSON_ON_BOTH_DATABASES(WaitsTest);

TEST_P(WaitsTest, ASignalWakesTheStepOnce) {
  Steps({"ask", "next"});
  Asks(1h);
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "waiting");
  EXPECT_EQ(Step("r1", "ask").state, "waiting");
  EXPECT_EQ(Step("r1", "ask").attempt, 0) << "a wait is no attempt";
  EXPECT_EQ(engine.numbers().running, 0);
  EXPECT_TRUE(Signal(engine, "answer", {{"yes", true}}));
  EXPECT_FALSE(Signal(engine, "answer", {{"yes", false}}));
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Step("r1", "ask").result, R"({"yes":true})");
  EXPECT_THAT(calls_, ElementsAre("ask", "ask", "next"));
  EXPECT_THAT(Events("r1"),
              ElementsAre(":queued", "ask:running", "ask:waiting", "ask:ready", "ask:running",
                          "ask:done", "next:running", "next:done", ":succeeded"));
}

TEST_P(WaitsTest, ASignalThatComesEarlyIsKept) {
  Steps({"ask"});
  Asks(1h);
  Engine& engine = StartEngine();
  EXPECT_FALSE(Signal(engine, "answer", {{"n", 1}}));
  EXPECT_FALSE(Signal(engine, "answer", {{"n", 2}}));
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Run("r1").result, R"({"n":1})");
  StartRun(engine, {.id = "r2"});
  UntilRun("r2", "waiting");
  EXPECT_TRUE(Signal(engine, "answer", {{"n", 3}}));
  UntilRun("r2", "succeeded");
  EXPECT_EQ(Run("r2").result, R"({"n":3})");
}

TEST_P(WaitsTest, ASignalDuringTheStepIsForItsNextWait) {
  Steps({"ask"});
  Engine& engine = StartEngine();
  On("ask", [&](const StepContext& context) {
    // The second one comes while the first is being dealt with.
    if (context.signal.empty()) return Outcome::Wait("answer", 1h);
    if (context.signal.at("n") == 2) return Outcome::Done(context.signal);
    Outcome again = Outcome::Wait("answer", 1h);
    again.also = [&](store::Transaction& tx) -> Status {
      TRY_ASSIGN(bool woke, engine.Signal(tx, "answer", {{"n", 2}}));
      EXPECT_FALSE(woke);
      return {};
    };
    return again;
  });
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "waiting");
  EXPECT_TRUE(Signal(engine, "answer", {{"n", 1}}));
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Run("r1").result, R"({"n":2})");
}

TEST_P(WaitsTest, AWaitEndsByItself) {
  Steps({"ask"});
  Asks(20ms);
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Run("r1").result, R"({"timeout":true})");
}

TEST_P(WaitsTest, WaitsAndTheirEndsSurviveRestarts) {
  Steps({"ask"});
  On("ask", [](const StepContext& context) {
    if (!context.signal.empty()) return Outcome::Done(context.signal);
    return Outcome::Wait(context.run_id, 1h);
  });
  Engine& first = StartEngine();
  StartRun(first, {.id = "short"});
  StartRun(first, {.id = "long"});
  UntilRun("short", "waiting");
  UntilRun("long", "waiting");
  Destroy(first);
  Engine& second = MakeEngine();
  EXPECT_TRUE(Signal(second, "long", {{"n", 1}})) << "also by an engine that runs nothing";
  Destroy(second);
  // Its end comes while no server runs.
  Write([](store::Transaction& tx) {
    return tx.Set(store::Select<store::StepRow>().Eq(&store::StepRow::run_id, "short"),
                  {store::Assign(&store::StepRow::wait_until, std::optional<Time>(Now()))});
  });
  StartEngine();
  UntilRun("short", "succeeded");
  UntilRun("long", "succeeded");
  EXPECT_EQ(Run("short").result, R"({"timeout":true})");
  EXPECT_EQ(Run("long").result, R"({"n":1})");
}

TEST_P(WaitsTest, AnAnswerIsNotLostWhenTheStepFailsAfterIt) {
  Steps({"ask"});
  On("ask", [](const StepContext& context) {
    if (context.signal.empty()) return Outcome::Wait("answer", 1h);
    if (context.attempt == 1) return Outcome::Failed(Error(Code::kUnavailable, "not now"));
    return Outcome::Done(context.signal);
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "waiting");
  Signal(engine, "answer", {{"n", 1}});
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Run("r1").result, R"({"n":1})");
}

TEST_P(WaitsTest, ARunThatNeedsItsUserWaitsForThem) {
  Steps({"push"});
  On("push", [](const StepContext& context) {
    if (context.signal.empty())
      return Outcome::Failed(Error(Code::kPermissionDenied, "the token may not push"));
    return Outcome::Done(context.signal);
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  StartRun(engine, {.id = "r2"});
  UntilRun("r1", "waiting");
  UntilRun("r2", "waiting");
  EXPECT_EQ(Run("r1").error_class, "user_action");
  EXPECT_EQ(Run("r1").error, "the token may not push");
  EXPECT_TRUE(Signal(engine, Engine::UserKey("r1"), {{"token", "new"}}));
  UntilRun("r1", "succeeded");
  EXPECT_EQ(Run("r1").error, "");
  On("push", [](const StepContext&) { return Outcome::Done(); });
  ASSERT_TRUE(Redrive(engine, "r2"));
  UntilRun("r2", "succeeded");
}

TEST_P(WaitsTest, SignalsThatNobodyWantsAreForgotten) {
  Steps({"ask"});
  config_.flow_lease_ms = 60;
  Engine& engine = StartEngine();
  Signal(engine, "nobody", {});
  Signal(engine, "somebody", {});
  Write([](store::Transaction& tx) {
    return tx.Set(store::Select<store::SignalRow>().Eq(&store::SignalRow::wait_key, "nobody"),
                  {store::Assign(&store::SignalRow::at, Now() - 24h * 31)});
  });
  Until([&] {
    return Write([](store::Transaction& tx) {
             return tx.Count(store::Select<store::SignalRow>());
           }).value() == 1;
  });
}

}  // namespace
}  // namespace caisson::flow
