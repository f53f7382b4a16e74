#include <gmock/gmock.h>

#include "build/build_fixture.h"
#include "build/state.h"
#include "store/work_rows.h"

namespace caisson::build {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Changes = std::vector<FileChange>;

const Changes kPage = {{.path = "index.html", .new_content = "<h1>one</h1>"}};

std::string TextIn(const json::object& data, std::string_view name) {
  return work::TextOf(data, name);
}

class BuildFlowTest : public BuildTest {};

TEST_F(BuildFlowTest, AFirstBuildGoesThroughFiveStatesAndIsReady) {
  BuildRow row = Build({.goal = "a shop"});
  EXPECT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(VersionName(row.number), "build_v0_1");
  EXPECT_EQ(row.preview_url, "https://3000-fake-sandbox-001.e2b.app");
  EXPECT_EQ(row.sandbox_id, "fake-sandbox-001");
  EXPECT_EQ(row.workspace_path, "/home/user/project");
  EXPECT_EQ(workbench_.creates, 1);
  EXPECT_EQ(workbench_.served.at("fake-sandbox-001").at("index.html"), "<h1>one</h1>");
  std::vector<std::string> states;
  for (const json::object& data : DataOf("build_updated", row.id))
    states.push_back(TextIn(data, "state"));
  EXPECT_THAT(states,
              ElementsAre("queued", "starting", "scaffold", "code", "deps", "checks", "ready"));
  EXPECT_EQ(DataOf("build.stage.started", row.id).size(), 5U);
  EXPECT_EQ(DataOf("build.stage.completed", row.id).size(), 5U);
  EXPECT_EQ(runner_->jobs.at(0).goal, "a shop");
}

TEST_F(BuildFlowTest, BuildsWaitForTheirSandboxesSideBySide) {
  // One thread: if one of them held it while it waits, the others would never ask.
  constexpr int kBuilds = 12;
  workbench_.opens_together = kBuilds;
  std::vector<std::string> ids;
  for (int i = 0; i < kBuilds; ++i)
    ids.push_back(Create({.project = fmt::format("shop-{}", i), .files = kPage})->row.id);
  for (const std::string& id : ids) EXPECT_EQ(Await(id).state, "ready");
  EXPECT_EQ(workbench_.creates, kBuilds);
}

TEST_F(BuildFlowTest, TheRunnerIsASettingAndItsTokensAreACost) {
  config_.build_runner = "llm";
  runner_->tokens = 1'000;
  auto made = Wait(builds_->Create("ann", {.project = "shop", .goal = "a shop"}));
  ASSERT_TRUE(made) << made.error().message();
  BuildRow row = Await(made->row.id);
  EXPECT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(row.runner, "llm");
  auto costs = Write([](Tx& tx) { return tx.List(store::Select<store::CostRow>()); }).value();
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].model, "m-1");
  EXPECT_EQ(costs[0].tokens_in, 1'000);
  EXPECT_EQ(costs[0].tokens_out, 1'000);
  config_.build_runner = "command";
  EXPECT_EQ(Wait(builds_->Create("ann", {.project = "shop", .goal = "a shop"})).error().code(),
            Code::kInvalidArgument);  // it needs an agent
}

TEST_F(BuildFlowTest, RunsHoldNoFiles) {
  std::string large(100'000, 'x');
  BuildRow row = Build({.files = Changes{{.path = "index.html", .new_content = large}}});
  ASSERT_EQ(row.state, "ready") << row.error_message;
  size_t held = row.options.size();
  auto runs = Write([](Tx& tx) { return tx.List(store::Select<store::RunRow>()); }).value();
  auto steps = Write([](Tx& tx) { return tx.List(store::Select<store::StepRow>()); }).value();
  for (const auto& run : runs) held += run.input.size() + run.result.size();
  for (const auto& step : steps) held += step.result.size();
  EXPECT_GE(steps.size(), 7U);
  EXPECT_LT(held, 10'000U);
}

TEST_F(BuildFlowTest, ARunnerThatFailsCostsNoSandbox) {
  runner_->fails = Error(Code::kFailedPrecondition, "no idea");
  BuildRow row = Build({.goal = "a shop"});
  EXPECT_EQ(row.state, "failed");
  EXPECT_EQ(row.error_category, "runner_failure");
  EXPECT_THAT(row.debug_id, HasSubstr("dbg_"));
  EXPECT_EQ(workbench_.creates, 0);
}

TEST_F(BuildFlowTest, ARunnerThatIsAwayIsAskedAgain) {
  runner_->fails = Error(Code::kUnavailable, "busy");
  BuildRow row = Build({.goal = "a shop"});
  EXPECT_EQ(row.state, "failed");
  EXPECT_EQ(static_cast<int64_t>(runner_->jobs.size()), config_.flow_attempts);
}

TEST_F(BuildFlowTest, FilesThatAreWrongCostNoSandbox) {
  runner_->changes = {{.path = "app.jsx", .new_content = "1"}};  // without a package.json
  BuildRow row = Build({.goal = "a shop"});
  EXPECT_EQ(row.error_category, "invalid_files");
  EXPECT_EQ(workbench_.creates, 0);
}

TEST_F(BuildFlowTest, VersionsCountOnlyWhatIsReady) {
  EXPECT_EQ(Build({.goal = "one"}).number, 1);
  runner_->fails = Error(Code::kUnknown, "no");
  EXPECT_EQ(Build({.goal = "two"}).number, 0);
  runner_->fails.reset();
  EXPECT_EQ(Build({.goal = "three"}).number, 2);
  EXPECT_EQ(Build({.project = "other", .goal = "four"}).number, 1);
}

TEST_F(BuildFlowTest, GivenFilesAreWrittenAsTheyAre) {
  BuildRow row = Build({.files = Changes{{.path = "index.html", .new_content = "ü\n"},
                                         {.path = "empty.txt", .new_content = ""}}});
  ASSERT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(row.runner, "files");
  const Files& written = workbench_.sandboxes.at(row.sandbox_id);
  EXPECT_EQ(written.at("index.html"), "ü\n");
  EXPECT_EQ(written.at("empty.txt"), "");
  EXPECT_TRUE(runner_->jobs.empty());
}

TEST_F(BuildFlowTest, AnInstallationIsTriedOnceMoreWhenTheNetworkIsToBlame) {
  // The pause before it is part of what is promised; this test waits for it.
  Files files = {{"requirements.txt", "flask\n"}, {"app.py", "import flask"}};
  std::string line = DetectPackages(files).at(0).install_command;
  workbench_.results[line] = {{.exit_code = 1, .stderr_text = "npm ERR! network ECONNRESET\n"},
                              {.exit_code = 0}};
  BuildRow row = Build({.files = Changes{{.path = "requirements.txt", .new_content = "flask\n"},
                                         {.path = "app.py", .new_content = "import flask"}}});
  EXPECT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(std::ranges::count(workbench_.commands, line), 2);
}

TEST_F(BuildFlowTest, AFailedInstallationKeepsItsLog) {
  Files files = {{"package.json", R"({"scripts":{"dev":"vite"},"dependencies":{"vite":"1"}})"}};
  std::string line = DetectPackages(files).at(0).install_command;
  workbench_.results[line] = {{.exit_code = 1, .stderr_text = "npm error code E404\n"}};
  BuildRow row =
      Build({.files = Changes{{.path = "package.json", .new_content = files.at("package.json")}}});
  EXPECT_EQ(row.state, "failed");
  EXPECT_EQ(row.error_category, "install_failure");
  EXPECT_THAT(row.error_message, HasSubstr("E404"));
  EXPECT_FALSE(row.error_summary.empty());
  EXPECT_THAT(LogOf(row.id), Contains("npm error code E404"));
  EXPECT_TRUE(workbench_.sandboxes.empty());
}

TEST_F(BuildFlowTest, ReadyOnlyWhenThePreviewAnswersBelow500) {
  workbench_.answers = {502, 503, 404};
  BuildRow row = Build({.files = kPage});
  EXPECT_EQ(row.state, "ready");
  EXPECT_EQ(workbench_.fetches, 3);
}

TEST_F(BuildFlowTest, AServerThatEndsIsACrash) {
  workbench_.answers = {502};
  workbench_.server_runs = false;
  BuildRow row = Build({.files = kPage});
  EXPECT_EQ(row.state, "failed");
  EXPECT_EQ(row.error_category, "runtime_crash");
  EXPECT_THAT(row.error_message, HasSubstr("Traceback"));
  EXPECT_THAT(row.error_message, Not(HasSubstr("port 81"))) << "what is around is for the log only";
}

TEST_F(BuildFlowTest, AnIterationTakesTheSandboxOver) {
  BuildRow first = Build({.goal = "one"});
  runner_->changes = {{.path = "index.html", .new_content = "<h1>two</h1>"}};
  BuildRow second = Build({.goal = "make it two", .parent_id = first.id});
  ASSERT_EQ(second.state, "ready") << second.error_message;
  EXPECT_EQ(VersionName(second.number), "build_v0_2");
  EXPECT_EQ(second.sandbox_id, first.sandbox_id);
  EXPECT_EQ(workbench_.creates, 1);
  EXPECT_EQ(runner_->jobs.at(1).files.at("index.html"), "<h1>one</h1>");
  auto told = DataOf("iteration_completed", second.id);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(TextIn(told[0], "build_version"), "build_v0_2");
  EXPECT_EQ(TextIn(told[0], "change_description"), "make it two");
  EXPECT_FALSE(Row(first.id).viewing_until);
}

TEST_F(BuildFlowTest, AnIterationWithoutItsSandboxStartsFromTheSnapshot) {
  BuildRow first = Build({.goal = "one"});
  workbench_.sandboxes.clear();
  BuildRow second = Build({.goal = "two", .parent_id = first.id});
  EXPECT_EQ(second.state, "ready") << second.error_message;
  EXPECT_EQ(second.sandbox_id, "fake-sandbox-002");
  EXPECT_EQ(workbench_.made_from.at("fake-sandbox-002"), first.snapshot_id);
}

TEST_F(BuildFlowTest, AFailedIterationRestoresTheVersionBefore) {
  BuildRow first = Build({.goal = "one"});
  runner_->changes = {{.path = "index.html", .new_content = "broken"},
                      {.path = "extra.html", .new_content = "more"}};
  workbench_.results["false"] = {{.exit_code = 1, .stderr_text = "SyntaxError: broken\n"}};
  NewBuild change{.goal = "break it", .parent_id = first.id};
  change.options["checks"] = json::array{"false"};
  change.options["max_fixes"] = 0;
  BuildRow second = Build(change);
  EXPECT_EQ(second.state, "failed");
  EXPECT_EQ(second.error_category, "compile_error");
  EXPECT_FALSE(second.debug_id.empty());
  EXPECT_EQ(second.restored_id, first.id);
  EXPECT_EQ(second.number, 0);
  // The files, not the model, bring it back.
  Files expected = {{"index.html", "<h1>one</h1>"}};
  EXPECT_EQ(workbench_.sandboxes.at(first.sandbox_id), expected);
  EXPECT_EQ(workbench_.served.at(first.sandbox_id), expected);
  EXPECT_EQ(runner_->jobs.size(), 2U);
  EXPECT_THAT(LogOf(second.id), Contains("The version before, build_v0_1, is back."));
  EXPECT_TRUE(Row(first.id).viewing_until);
}

TEST_F(BuildFlowTest, WhatOnlyTheSnapshotHasComesBackWithIt) {
  BuildRow first = Build({.goal = "one"});
  workbench_.snapshots[first.snapshot_id]["made.db"] = "data";
  workbench_.sandboxes[first.sandbox_id]["made.db"] = "data";
  workbench_.results["false"] = {{.exit_code = 1}};
  workbench_.deletes["false"] = "made.db";
  NewBuild change{.goal = "break it", .parent_id = first.id};
  change.options["checks"] = json::array{"false"};
  change.options["max_fixes"] = 0;
  BuildRow second = Build(change);
  EXPECT_EQ(second.restored_id, first.id);
  BuildRow now = Row(first.id);
  EXPECT_NE(now.sandbox_id, first.sandbox_id);
  EXPECT_FALSE(workbench_.sandboxes.contains(first.sandbox_id));
  EXPECT_EQ(workbench_.served.at(now.sandbox_id),
            (Files{{"index.html", "<h1>one</h1>"}, {"made.db", "data"}}));
}

TEST_F(BuildFlowTest, WhatTheChecksFindIsMended) {
  runner_->changes = {{.path = "index.html", .new_content = "broken"},
                      {.path = "bad.html", .new_content = "bad"}};
  runner_->mended = {{.path = "index.html", .new_content = "good"}, {.path = "bad.html"}};
  workbench_.results["lint"] = {{.exit_code = 1, .stderr_text = "SyntaxError: broken\n"},
                                {.exit_code = 0}};
  NewBuild build{.goal = "a shop"};
  build.options["checks"] = json::array{"lint"};
  BuildRow row = Build(build);
  ASSERT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(row.number, 1);
  EXPECT_TRUE(row.error_category.empty());
  ASSERT_EQ(runner_->jobs.size(), 2U);
  const RunnerJob& mend = runner_->jobs[1];
  EXPECT_THAT(mend.failure, HasSubstr("$ lint"));
  EXPECT_THAT(mend.failure, HasSubstr("SyntaxError: broken"));
  EXPECT_EQ(mend.attempt, 2);
  EXPECT_EQ(mend.files.at("index.html"), "broken");
  Files expected = {{"index.html", "good"}};
  EXPECT_EQ(workbench_.served.at(row.sandbox_id), expected);
  EXPECT_EQ(Wait(builds_->GetFiles("ann", row.id)).value(), expected);
  auto told = DataOf("build.autofix", row.id);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], (json::object{{"attempt", 1}, {"max", 2}}));
  std::vector<std::string> states;
  for (const json::object& data : DataOf("build_updated", row.id))
    states.push_back(TextIn(data, "state"));
  EXPECT_THAT(states, ElementsAre("queued", "starting", "scaffold", "code", "deps", "checks",
                                  "scaffold", "code", "deps", "checks", "ready"));
  EXPECT_THAT(LogOf(row.id), Contains("Auto-fixing (attempt 1 of 2)"));
}

TEST_F(BuildFlowTest, MendingIsTriedSoOftenAndTheVersionBeforeComesBack) {
  BuildRow first = Build({.goal = "one"});
  runner_->mended = {{.path = "index.html", .new_content = "still broken"}};
  workbench_.results["lint"] = {{.exit_code = 1, .stderr_text = "SyntaxError: broken\n"}};
  NewBuild change{.goal = "break it", .parent_id = first.id};
  change.options["checks"] = json::array{"lint"};
  change.options["max_fixes"] = 3;
  BuildRow second = Build(change);
  EXPECT_EQ(second.state, "failed");
  EXPECT_EQ(second.error_category, "compile_error");
  EXPECT_EQ(runner_->jobs.size(), 5U);  // of the first build, of this one, and three to mend it
  EXPECT_EQ(DataOf("build.autofix", second.id).size(), 3U);
  EXPECT_EQ(second.restored_id, first.id);
  EXPECT_EQ(workbench_.served.at(first.sandbox_id), (Files{{"index.html", "<h1>one</h1>"}}));
}

TEST_F(BuildFlowTest, ARunnerThatGivesUpWhileMendingLeavesTheVersionBefore) {
  BuildRow first = Build({.goal = "one"});
  workbench_.results["lint"] = {{.exit_code = 1, .stderr_text = "SyntaxError: broken\n"}};
  runner_->changes = {{.path = "index.html", .new_content = "broken"}};
  runner_->mended = {{.path = "app.jsx", .new_content = "1"}};  // without a package.json
  NewBuild change{.goal = "break it", .parent_id = first.id};
  change.options["checks"] = json::array{"lint"};
  BuildRow second = Build(change);
  EXPECT_EQ(second.error_category, "invalid_files");
  EXPECT_EQ(second.restored_id, first.id);
  EXPECT_EQ(workbench_.served.at(first.sandbox_id), (Files{{"index.html", "<h1>one</h1>"}}));
}

TEST_F(BuildFlowTest, GivenFilesAreNotMended) {
  workbench_.results["lint"] = {{.exit_code = 1, .stderr_text = "SyntaxError: broken\n"}};
  NewBuild build{.files = kPage};
  build.options["checks"] = json::array{"lint"};
  BuildRow row = Build(build);
  EXPECT_EQ(row.state, "failed");
  EXPECT_TRUE(DataOf("build.autofix", row.id).empty());
  EXPECT_EQ(std::ranges::count(workbench_.commands, "lint"), 1);
}

TEST_F(BuildFlowTest, TwoIterationsAtOnceDoNotShareASandbox) {
  BuildRow first = Build({.goal = "one"});
  workbench_.opens_together = workbench_.opens + 2;
  auto second = Create({.goal = "two", .parent_id = first.id});
  auto third = Create({.goal = "three", .parent_id = first.id});
  BuildRow a = Await(second->row.id), b = Await(third->row.id);
  EXPECT_EQ(a.state, "ready") << a.error_message;
  EXPECT_EQ(b.state, "ready") << b.error_message;
  EXPECT_NE(a.sandbox_id, b.sandbox_id);
  EXPECT_NE(a.number, b.number);
}

TEST_F(BuildFlowTest, ARollbackBringsAnOldVersionBack) {
  BuildRow first = Build({.goal = "one"});
  runner_->changes = {{.path = "index.html", .new_content = "two"},
                      {.path = "new.html", .new_content = "new"}};
  BuildRow second = Build({.goal = "two", .parent_id = first.id});
  auto back = Wait(builds_->Rollback("ann", second.id, "build_v0_1"));
  ASSERT_TRUE(back) << back.error().message();
  BuildRow third = Await(back->row.id);
  EXPECT_EQ(third.state, "ready") << third.error_message;
  EXPECT_EQ(third.number, 3);
  EXPECT_EQ(third.preview_url, first.preview_url);
  EXPECT_EQ(workbench_.served.at(third.sandbox_id), (Files{{"index.html", "<h1>one</h1>"}}));
  EXPECT_EQ(runner_->jobs.size(), 2U);
  EXPECT_EQ(Wait(builds_->Rollback("ann", second.id, "build_v0_9")).error().code(),
            Code::kNotFound);
  EXPECT_EQ(Wait(builds_->Rollback("bob", second.id, "build_v0_1")).error().code(),
            Code::kNotFound);
}

TEST_F(BuildFlowTest, TwoVersionsAreCompared) {
  BuildRow first = Build({.goal = "one"});
  runner_->changes = {{.path = "new.html", .new_content = "new\n"}};
  BuildRow second = Build({.goal = "two", .parent_id = first.id});
  auto files = Wait(builds_->Diff("ann", second.id, ""));
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 1U);
  EXPECT_EQ(files->at(0).path, "new.html");
  EXPECT_EQ(files->at(0).change, "added");
  EXPECT_EQ(Wait(builds_->Diff("bob", second.id, first.id)).error().code(), Code::kNotFound);
}

TEST_F(BuildFlowTest, ACanceledBuildLeavesNothing) {
  workbench_.open_takes = std::chrono::seconds(60);
  auto made = Create({.files = kPage});
  while (workbench_.opens == 0) Wait(Pause());
  auto canceled = Wait(builds_->Cancel("ann", made->row.id, "never mind"));
  ASSERT_TRUE(canceled) << canceled.error().message();
  BuildRow row = Await(made->row.id);
  EXPECT_EQ(row.state, "failed");
  EXPECT_EQ(row.error_category, "canceled");
  EXPECT_EQ(row.error_message, "never mind");
  EXPECT_EQ(Wait(builds_->Cancel("ann", row.id, "")).error().code(), Code::kFailedPrecondition);
}

TEST_F(BuildFlowTest, AServerThatEndsInTheMiddleIsFollowedByOneThatGoesOn) {
  workbench_.open_takes = std::chrono::milliseconds(200);
  auto made = Create({.files = kPage});
  while (workbench_.opens == 0) Wait(Pause());
  EndServer();
  BeginServer();
  BuildRow row = Await(made->row.id);
  EXPECT_EQ(row.state, "ready") << row.error_message;
  EXPECT_EQ(row.number, 1);
  EXPECT_EQ(workbench_.sandboxes.size(), 1U);
  auto lines = LogOf(row.id);
  EXPECT_EQ(std::ranges::count(lines, "Installing dependencies"), 1);
}

TEST_F(BuildFlowTest, WhatIsSomebodyElsesDoesNotExist) {
  BuildRow row = Build({.goal = "one"});
  EXPECT_EQ(Wait(builds_->Get("bob", row.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(builds_->GetFiles("bob", row.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(builds_->Log("bob", row.id, -1, 10)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(builds_->Cancel("bob", row.id, "")).error().code(), Code::kNotFound);
  auto theirs = Create({.goal = "two", .parent_id = row.id}, "bob");
  EXPECT_EQ(theirs.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::build
