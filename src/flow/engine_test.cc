#include "flow/engine.h"

#include <gmock/gmock.h>

#include "flow/flow_fixture.h"
#include "flow/retry.h"

namespace caisson::flow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

Outcome Fails(ErrorClass error_class, std::string error) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFail;
  outcome.error_class = error_class;
  outcome.error = std::move(error);
  return outcome;
}

class EngineTest : public FlowTest {};
CAISSON_ON_BOTH_DATABASES(EngineTest);

TEST_P(EngineTest, StepsRunInOrderAndGetTheResultsBeforeThem) {
  Steps({"one", "two", "three"});
  On("three", [](const StepContext& context) {
    EXPECT_EQ(context.input.at("text"), "go");
    EXPECT_EQ(context.run_id, "r1");
    EXPECT_EQ(context.execution_id, "e1");
    EXPECT_EQ(context.attempt, 1);
    EXPECT_EQ(context.results.size(), 2);
    return Outcome::Done({{"after", context.results.at("two").at("by")}});
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1", .execution_id = "e1", .input = {{"text", "go"}}});
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("one", "two", "three"));
  EXPECT_EQ(Run("r1").result, R"({"after":"two"})");
  EXPECT_TRUE(Run("r1").finished_at);
  EXPECT_THAT(Events("r1"), ElementsAre(":queued", "one:running", "one:done", "two:running",
                                        "two:done", "three:running", "three:done", ":succeeded"));
  EXPECT_EQ(engine.numbers().done, 3);
  EXPECT_EQ(engine.numbers().running, 0);
}

TEST_P(EngineTest, TheSameRunIsStartedOnce) {
  Steps({"one"});
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  auto start = [&](StartOptions options) {
    options.owner_id = "ann";
    return testing::Await(
        io_, store_->Write([&](store::Transaction& tx) { return engine.StartRun(tx, options); }));
  };
  EXPECT_EQ(start({.id = "r1", .definition = "test"}).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(start({.id = "r2", .definition = "other"}).error().message(),
            "There is no workflow 'other'.");
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("one"));
}

TEST_P(EngineTest, WhatIsTransientIsTriedAgainWhatIsNotIsNot) {
  Steps({"a"});
  Engine& engine = StartEngine();
  On("a", [](const StepContext& context) {
    return context.attempt < 3 ? Fails(ErrorClass::kTransient, "not now") : Outcome::Done();
  });
  StartRun(engine, {.id = "passing"});
  UntilRun("passing", "succeeded");
  EXPECT_EQ(Step("passing", "a").attempt, 3);
  EXPECT_EQ(Step("passing", "a").error, "");
  EXPECT_EQ(engine.numbers().retried, 2);

  On("a", [](const StepContext&) { return Fails(ErrorClass::kTransient, "never"); });
  StartRun(engine, {.id = "exhausted"});
  UntilRun("exhausted", "dead");
  EXPECT_EQ(Step("exhausted", "a").attempt, config_.flow_attempts);
  EXPECT_EQ(Run("exhausted").error, "never");
  EXPECT_EQ(Run("exhausted").error_class, "transient");

  On("a", [](const StepContext&) { return Fails(ErrorClass::kPersistent, "broken"); });
  StartRun(engine, {.id = "persistent"});
  UntilRun("persistent", "dead");
  EXPECT_EQ(Step("persistent", "a").attempt, 1);

  On("a",
     [](const StepContext&) { return Outcome::Failed(Error(Code::kInvalidArgument, "nonsense")); });
  StartRun(engine, {.id = "fatal"});
  UntilRun("fatal", "failed");
  EXPECT_EQ(Step("fatal", "a").state, "failed");
  EXPECT_EQ(Run("fatal").error, "nonsense");
}

TEST_P(EngineTest, ErrorsHaveTheirClassByTheirCode) {
  for (Code code :
       {Code::kUnavailable, Code::kDeadlineExceeded, Code::kAborted, Code::kResourceExhausted})
    EXPECT_EQ(Classify(Error(code, "")), ErrorClass::kTransient) << CodeName(code);
  for (Code code : {Code::kUnauthenticated, Code::kPermissionDenied})
    EXPECT_EQ(Classify(Error(code, "")), ErrorClass::kUserAction) << CodeName(code);
  for (Code code : {Code::kInternal, Code::kDataLoss})
    EXPECT_EQ(Classify(Error(code, "")), ErrorClass::kPersistent) << CodeName(code);
  for (Code code :
       {Code::kInvalidArgument, Code::kNotFound, Code::kAlreadyExists, Code::kFailedPrecondition,
        Code::kOutOfRange, Code::kUnimplemented, Code::kUnknown, Code::kCanceled})
    EXPECT_EQ(Classify(Error(code, "")), ErrorClass::kFatal) << CodeName(code);
}

TEST_P(EngineTest, WaitsGrowWithAttemptsUpToTheirLimit) {
  auto between = [](int64_t low, int64_t high) { return AllOf(Ge(low), Le(high)); };
  EXPECT_THAT(RetryDelay(1, std::nullopt, 2000, 60'000).count(), between(2000, 2100));
  EXPECT_THAT(RetryDelay(2, std::nullopt, 2000, 60'000).count(), between(4000, 4100));
  EXPECT_THAT(RetryDelay(3, std::nullopt, 2000, 60'000).count(), between(8000, 8100));
  EXPECT_THAT(RetryDelay(90, std::nullopt, 2000, 60'000).count(), between(60'000, 60'100));
  EXPECT_THAT(RetryDelay(1, 90s, 2000, 60'000).count(), between(90'000, 90'100));
}

TEST_P(EngineTest, ComesBackWhenTheOtherSideAskedFor) {
  Steps({"a"});
  On("a", [](const StepContext&) {
    Outcome outcome = Fails(ErrorClass::kTransient, "come back in an hour");
    outcome.retry_after = 1h;
    return outcome;
  });
  Engine& engine = StartEngine();
  Time before = Now();
  StartRun(engine, {.id = "r1"});
  Until([&] { return Step("r1", "a").error != ""; });
  EXPECT_EQ(Step("r1", "a").state, "ready");
  EXPECT_GE(Step("r1", "a").run_at, before + 1h);
  EXPECT_LE(Step("r1", "a").run_at, Now() + 1h + 1s);
}

TEST_P(EngineTest, AStepThatTakesTooLongHasFailedForNow) {
  Steps({"slow"});
  definition_.steps[0].timeout = 10ms;
  definition_.steps[0].attempts = 2;
  Hangs("slow");
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "dead");
  EXPECT_EQ(Run("r1").error, "The step 'slow' took longer than 10 ms.");
  EXPECT_EQ(Step("r1", "slow").attempt, 2);
}

TEST_P(EngineTest, AStepThatThrowsStopsItsRun) {
  Steps({"a"});
  On("a", [](const StepContext&) -> Outcome { throw std::runtime_error("oops"); });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "dead");
  EXPECT_EQ(Run("r1").error, "The step 'a' failed: oops");
}

TEST_P(EngineTest, WhatIsToBeWrittenWithTheOutcomeIsWrittenWithItOrNotAtAll) {
  Steps({"a", "b"});
  bool refuse = false;
  On("a", [&](const StepContext&) {
    Outcome outcome = Outcome::Done();
    outcome.also = [refuse](store::Transaction& tx) -> Status {
      TRY(tx.Emit({.at = Now(), .type = "log", .run_id = "mine"}));
      if (refuse) return Fail(Code::kFailedPrecondition, "the row is gone");
      return {};
    };
    return outcome;
  });
  Engine& engine = StartEngine();
  auto emitted = [&] {
    return Write([](store::Transaction& tx) {
             return tx.Count(store::Select<store::EventRow>().Eq(&store::EventRow::run_id, "mine"));
           })
        .value();
  };
  StartRun(engine, {.id = "good"});
  UntilRun("good", "succeeded");
  EXPECT_EQ(emitted(), 1);
  refuse = true;
  StartRun(engine, {.id = "bad"});
  UntilRun("bad", "failed");
  EXPECT_EQ(Run("bad").error, "the row is gone");
  EXPECT_EQ(emitted(), 1);
}

TEST_P(EngineTest, TheEndOfARunIsToldInItsTransaction) {
  Steps({"a"});
  definition_.finished = [](store::Transaction& tx, const store::RunRow& run) -> Status {
    TRY(tx.Emit({.at = Now(), .type = "log", .run_id = "end", .data = run.state}));
    return {};
  };
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "succeeded");
  auto rows = Write([](store::Transaction& tx) {
    return tx.List(store::Select<store::EventRow>().Eq(&store::EventRow::run_id, "end"));
  });
  ASSERT_EQ(rows->size(), 1);
  EXPECT_EQ(rows->front().data, "succeeded");
}

// ---- steps that always run -------------------------------------------------------------------

TEST_P(EngineTest, CleaningUpFollowsAFailure) {
  Steps({"make", "work", "more", "clean!", "clean_too!"});
  On("work", [](const StepContext&) { return Fails(ErrorClass::kFatal, "no"); });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "failed");
  EXPECT_THAT(calls_, ElementsAre("make", "work", "clean", "clean_too"));
  EXPECT_EQ(Run("r1").error, "no");
}

TEST_P(EngineTest, ACleanUpThatFailsIsTriedAgainAndDoesNotHideTheReason) {
  Steps({"work", "clean!"});
  On("work", [](const StepContext&) { return Fails(ErrorClass::kFatal, "no"); });
  On("clean", [](const StepContext&) { return Fails(ErrorClass::kTransient, "dirty"); });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "failed");
  EXPECT_EQ(calls_.size(), 1 + config_.flow_attempts);
  EXPECT_EQ(Run("r1").error, "no");
  EXPECT_EQ(Step("r1", "clean").error, "dirty");
}

TEST_P(EngineTest, ARunWhoseCleanUpFailsIsDead) {
  Steps({"work", "clean!"});
  On("clean", [](const StepContext&) { return Fails(ErrorClass::kUserAction, "may not"); });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "dead");
  EXPECT_EQ(Run("r1").error, "may not");
  On("clean", [](const StepContext&) { return Outcome::Done(); });
  ASSERT_TRUE(Redrive(engine, "r1"));
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("work", "clean", "clean"));
  EXPECT_EQ(Run("r1").result, R"({"by":"work"})");
}

// ---- redrive, versions -----------------------------------------------------------------------

TEST_P(EngineTest, ADeadRunGoesOnWhereItStoppedOrWhereItIsTold) {
  Steps({"one", "two", "three", "clean!"});
  bool broken = true;
  On("two", [&](const StepContext&) {
    return broken ? Fails(ErrorClass::kPersistent, "broken") : Outcome::Done();
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1"});
  UntilRun("r1", "dead");
  EXPECT_THAT(calls_, ElementsAre("one", "two", "clean"));
  EXPECT_EQ(Redrive(engine, "r1", "three").error().message(),
            "The run cannot go on at the step 'three': 'two' comes before it and is not done.");
  EXPECT_EQ(Redrive(engine, "r1", "four").error().code(), Code::kFailedPrecondition);
  calls_.clear();
  ASSERT_TRUE(Redrive(engine, "r1", "one"));
  Until([&] { return calls_.size() == 3; });
  UntilRun("r1", "dead");
  EXPECT_THAT(calls_, ElementsAre("one", "two", "clean"));
  calls_.clear();
  broken = false;
  ASSERT_TRUE(Redrive(engine, "r1"));
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("two", "three", "clean"));
  EXPECT_EQ(Run("r1").error, "");
  EXPECT_EQ(Redrive(engine, "r1").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Redrive(engine, "r9").error().code(), Code::kNotFound);
}

TEST_P(EngineTest, ARunOfAnotherVersionIsDeadUntilSomebodySaysWhereToGoOn) {
  Steps({"one", "two"});
  Engine& old = MakeEngine();
  StartRun(old, {.id = "r1"});
  StartRun(old, {.id = "r2"});
  Destroy(old);
  Steps({"zero", "one", "two"});
  definition_.version = 2;
  Engine& engine = StartEngine();
  UntilRun("r1", "dead");
  EXPECT_THAT(Run("r1").error, HasSubstr("version 1 of the workflow 'test', this server has "
                                         "version 2"));
  EXPECT_THAT(Redrive(engine, "r1").error().message(), HasSubstr("name the step"));
  ASSERT_TRUE(Redrive(engine, "r1", "zero"));
  UntilRun("r1", "succeeded");
  EXPECT_THAT(calls_, ElementsAre("zero", "one", "two"));
  EXPECT_EQ(Run("r1").version, 2);
}

TEST_P(EngineTest, ARunOfAnUnknownWorkflowIsDead) {
  Steps({"one"});
  Engine& old = MakeEngine();
  StartRun(old, {.id = "r1"});
  Destroy(old);
  definition_.name = "new";
  Engine& engine = StartEngine();
  UntilRun("r1", "dead");
  EXPECT_THAT(Run("r1").error, HasSubstr("This server has no workflow 'test'"));
  EXPECT_EQ(Redrive(engine, "r1").error().code(), Code::kFailedPrecondition);
}

TEST_P(EngineTest, AStepIsNotRunWithOtherInputThanItWasBegunWith) {
  Steps({"one"});
  On("one", [](const StepContext&) {
    Outcome outcome = Fails(ErrorClass::kTransient, "later");
    outcome.retry_after = 1h;
    return outcome;
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "r1", .input = {{"n", 1}}});
  Until([&] { return Step("r1", "one").error == "later"; });
  Write([](store::Transaction& tx) -> Status {
    TRY(tx.Set(store::Select<store::RunRow>(), {store::Assign(&store::RunRow::input, "{}")}));
    TRY(tx.Set(store::Select<store::StepRow>(), {store::Assign(&store::StepRow::run_at, Now())}));
    return {};
  });
  engine.Wake();
  UntilRun("r1", "dead");
  EXPECT_THAT(Run("r1").error, HasSubstr("not what it was first started with"));
  EXPECT_EQ(calls_.size(), 1);
}

TEST_P(EngineTest, RunsThatEndedLongAgoAreDeleted) {
  config_.flow_lease_ms = 600;
  config_.run_retention_days = 90;
  Steps({"one"});
  Engine& first = StartEngine();
  for (const char* run : {"old", "new"}) StartRun(first, {.id = run});
  for (const char* run : {"old", "new"}) UntilRun(run, "succeeded");
  Write([](store::Transaction& tx) -> Status {
    TRY_ASSIGN(auto run, tx.Need<store::RunRow>("old", "run"));
    run.created_at = run.finished_at.emplace(Now() - std::chrono::days(91));
    return tx.Update(run);
  });
  // The first one has looked already, and looks again in an hour.
  StartEngine();
  Until([&] {
    return !Write([](store::Transaction& tx) { return tx.Get<store::RunRow>("old"); }).value();
  });
  EXPECT_EQ(Run("new").state, "succeeded");
}

}  // namespace
}  // namespace caisson::flow
