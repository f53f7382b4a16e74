#include "work/task_flow.h"

#include "work/agent_output.h"
#include "work/event.h"
#include "work/work_fixture.h"

namespace caisson::work {
namespace {

const std::vector<std::string> kSteps = {"provision", "clone", "branch",       "agent",
                                         "commit",    "push",  "pull_request", "finish"};

class TaskFlowTest : public WorkTest {
 protected:
  Started Begin(NewTask task) {
    agent_ = Agent("Ada").id;
    task.agent_id = agent_;
    auto started = Wait(work_->tasks.CreateAndStart("ann", std::move(task)));
    EXPECT_TRUE(started) << started.error().message();
    return *started;
  }
  store::AgentRow AgentNow() { return Wait(work_->agents.Get("ann", agent_)).value(); }
  void Redrive(const std::string& run_id, const std::string& step = "") {
    auto redriven = Write([&](Tx& tx) { return engine_->Redrive(tx, run_id, step); });
    ASSERT_TRUE(redriven) << redriven.error().message();
    engine_->Wake();
  }
  std::string agent_;
};

TEST_F(TaskFlowTest, GoesFromATaskToAPullRequest) {
  workshop_.agent_stdout =
      "working\n{\"caisson\":\"usage\",\"tokens_in\":5,\"dollars\":0.5}\n"
      "{\"caisson\":\"summary\",\"text\":\"Mended.\"}\n";
  NewTask task = ATask();
  task.options = {{"labels", json::array{"garden"}}};
  Started started = Begin(task);
  auto execution = Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(execution.summary, "Mended.");
  EXPECT_EQ(execution.head_sha, "head1");
  EXPECT_EQ(execution.pull_request_url, "https://github.com/acme/garden/pull/7");
  auto row = TaskOf(started.task_id);
  EXPECT_EQ(row.status, "in_review");
  EXPECT_EQ(row.git_branch, "task-" + row.id);
  EXPECT_EQ(row.pull_request_number, 7);
  EXPECT_EQ(row.pull_request_state, "open");
  EXPECT_EQ(AgentNow().status, "completed");
  EXPECT_EQ(AgentNow().current_task_id, std::nullopt);
  EXPECT_TRUE(workshop_.sandboxes.empty());
  EXPECT_EQ(workshop_.last_request.labels, std::vector<std::string>{"garden"});
  EXPECT_EQ(workshop_.last_request.base, "main");
  EXPECT_NE(workshop_.last_request.body.find("Mended."), std::string::npos);
  EXPECT_EQ(workshop_.last_commit.trailers[0], "Caisson-Task: " + row.id);
  auto costs = Wait(work_->costs.Stats("ann", {.task_id = row.id}, "kind")).value();
  ASSERT_EQ(costs.size(), 2);
  EXPECT_DOUBLE_EQ(costs[0].dollars, 0.5);
  EXPECT_DOUBLE_EQ(costs[1].dollars, 0.015);
  EXPECT_EQ(costs[1].sandbox_ms, 3'600'000);
  EXPECT_EQ(costs[1].cpu_ms, 90'000);
}

TEST_F(TaskFlowTest, WhatASandboxUsedIsKnownAlsoIfItsEndIsInterrupted) {
  workshop_.FailNext("release", Error(Code::kUnavailable, "no answer"));
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  auto costs = Wait(work_->costs.List("ann", {.kind = "sandbox"})).value();
  ASSERT_EQ(costs.total, 1);
  EXPECT_EQ(costs.items[0].cpu_ms, 90'000);
}

TEST_F(TaskFlowTest, TellsEveryStepAndTheAgentsStatus) {
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  std::vector<std::string> done, statuses;
  int64_t percent = 0;
  for (const json::object& data : DataOf("execution_step"))
    if (TextOf(data, "state") == "done") done.push_back(TextOf(data, "step"));
  EXPECT_EQ(done, kSteps);
  for (const json::object& data : DataOf("agent_updated"))
    if (statuses.empty() || statuses.back() != TextOf(data, "status"))
      statuses.push_back(TextOf(data, "status"));
  EXPECT_EQ(statuses, (std::vector<std::string>{"idle", "initializing", "cloning", "working",
                                                "committing", "pushing", "completed"}));
  for (const json::object& data : DataOf("progress")) {
    EXPECT_GT(IntOf(data, "percent"), percent);
    percent = IntOf(data, "percent");
  }
  for (const char* once : {"execution_started", "pr_created", "execution_completed", "completed"})
    EXPECT_EQ(Events(once).size(), 1) << once;
  for (const store::EventRow& event : Events("execution_step")) {
    EXPECT_EQ(event.execution_id, started.execution_id);
    EXPECT_EQ(event.task_id, started.task_id);
  }
}

TEST_F(TaskFlowTest, NothingChangedIsASuccessWithoutAPullRequest) {
  workshop_.changes = false;
  Started started = Begin(ATask());
  auto execution = Await(started.execution_id, {"succeeded"});
  EXPECT_NE(execution.summary.find("changed nothing"), std::string::npos);
  EXPECT_EQ(workshop_.Count("pull request"), 0);
  EXPECT_EQ(TaskOf(started.task_id).status, "in_review");
  EXPECT_EQ(TaskOf(started.task_id).pull_request_number, 0);
}

TEST_F(TaskFlowTest, WithoutARepositoryNothingIsPushedAndTheChangesAreKept) {
  NewTask task = ATask();
  task.repo_url = "";
  task.options = {{"approve_push", true}};  // there is nothing to agree to
  Started started = Begin(task);
  auto execution = Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(execution.head_sha, "head1");
  EXPECT_EQ(workshop_.Count("pull request"), 0);
  EXPECT_EQ(workshop_.Count("push " + execution.git_branch), 0);
  EXPECT_EQ(TaskOf(started.task_id).status, "in_review");
  auto kept =
      Write([&](Tx& tx) { return tx.Need<store::TaskChangesRow>(started.task_id, "changes"); });
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->execution_id, started.execution_id);
  EXPECT_EQ(kept->base_sha, "base0");
  EXPECT_EQ(kept->patch, "+a\n");
}

TEST_F(TaskFlowTest, ChangesThatCannotBeReadLoseNoWork) {
  workshop_.FailNext("changes", Error(Code::kUnavailable, "no answer"));
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(started.task_id).pull_request_number, 7);
}

TEST_F(TaskFlowTest, TheDemonstrationIsFoundAgain) {
  workshop_.hold_agent = true;
  auto first = Wait(work_->demo.Start("ann", "task-of-mine"));
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->task_id, "task-of-mine");
  EXPECT_FALSE(first->already);
  auto again = Wait(work_->demo.Start("ann", ""));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  EXPECT_EQ(again->task_id, first->task_id);
  workshop_.hold_agent = false;
  auto executions = Wait(work_->executions.List("ann", first->task_id, {}));
  ASSERT_EQ(executions->items.size(), 1u);
  Await(executions->items[0].id, {"succeeded"});
  auto next = Wait(work_->demo.Start("ann", ""));
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ(next->agent_id, first->agent_id);
  EXPECT_NE(next->task_id, first->task_id);
  executions = Wait(work_->executions.List("ann", next->task_id, {}));
  Await(executions->items[0].id, {"succeeded"});
}

TEST_F(TaskFlowTest, AFailedAgentFailsTheTaskAndARetryGoesOnThere) {
  workshop_.agent_result = {.exit_code = 3, .stderr_text = "oh no"};
  Started started = Begin(ATask());
  auto execution = Await(started.execution_id, {"failed"});
  EXPECT_EQ(execution.error, "the agent ended with status 3: oh no");
  EXPECT_EQ(TaskOf(started.task_id).status, "failed");
  EXPECT_EQ(AgentNow().status, "error");
  EXPECT_TRUE(workshop_.sandboxes.empty());
  EXPECT_EQ(workshop_.Count("end agent"), 1);

  // Its sandbox is gone: a new one is made and set up before the agent starts.
  workshop_.agent_result = {};
  Redrive(started.run_id);
  execution = Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(execution.error, "");
  EXPECT_EQ(TaskOf(started.task_id).status, "in_review");
  EXPECT_EQ(workshop_.Count("clone"), 2);
  EXPECT_EQ(workshop_.Count("agent"), 2);
  EXPECT_TRUE(workshop_.sandboxes.empty());
}

TEST_F(TaskFlowTest, AnOldRunIsNotRevivedBesideANewOne) {
  workshop_.agent_result = {.exit_code = 3, .stderr_text = "oh no"};
  Started first = Begin(ATask());
  Await(first.execution_id, {"failed"});
  workshop_.agent_result = {};
  workshop_.hold_agent = true;
  auto second = Start(first.task_id, agent_);
  ASSERT_TRUE(second) << second.error().message();
  auto revive = [&] {
    return Write([&](Tx& tx) { return engine_->Redrive(tx, first.run_id, ""); });
  };
  auto refused = revive();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition) << refused.error().message();
  EXPECT_EQ(ExecutionOf(first.execution_id).row.status, "failed");
  EXPECT_EQ(AgentNow().current_task_id, first.task_id);
  workshop_.hold_agent = false;
  Await(second->execution_id, {"succeeded"});
  EXPECT_TRUE(revive());  // its turn, if somebody wants it
}

TEST_F(TaskFlowTest, WhatTheNetworkLetDownIsTriedAgain) {
  workshop_.FailNext("open", Error(Code::kUnavailable, "no answer"));
  workshop_.FailNext("push", Error(Code::kUnavailable, "no answer"));
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("pull request"), 1);
}

TEST_F(TaskFlowTest, LostWorkIsToldNotPushed) {
  workshop_.FailNext("push", Error(Code::kUnavailable, "no answer"));
  workshop_.on_push = [this] { workshop_.sandboxes.clear(); };  // it dies before the next attempt
  Started started = Begin(ATask());
  auto execution = Await(started.execution_id, {"failed", "succeeded"});
  EXPECT_EQ(execution.status, "failed");
  EXPECT_NE(execution.error.find("agent's work is gone"), std::string::npos) << execution.error;
  EXPECT_EQ(workshop_.Count("pull request"), 0);
}

TEST_F(TaskFlowTest, CancelEndsTheWorkAndTheSandbox) {
  workshop_.hold_agent = true;
  Started started = Begin(ATask());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("agent") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EXPECT_TRUE(Wait(work_->tasks.Cancel("ann", started.task_id, "no longer needed")).value());
  auto execution = Await(started.execution_id, {"canceled"});
  EXPECT_EQ(execution.error, "no longer needed");
  EXPECT_EQ(TaskOf(started.task_id).status, "canceled");
  EXPECT_EQ(AgentNow().status, "idle");
  EXPECT_TRUE(workshop_.sandboxes.empty());
  EXPECT_EQ(workshop_.Count("commit"), 0);
}

TEST_F(TaskFlowTest, APushWaitsForAPersonWhoAgrees) {
  NewTask task = ATask();
  task.options = {{"approve_push", true}};
  Started started = Begin(task);
  Await(started.execution_id, {"waiting"});
  auto asked = Wait(work_->approvals.List("ann", {.state = "pending"})).value();
  ASSERT_EQ(asked.total, 1);
  EXPECT_EQ(asked.items[0].kind, "push");
  EXPECT_EQ(workshop_.Count("push task-" + started.task_id), 0);
  std::string id = asked.items[0].id;
  EXPECT_EQ(Wait(work_->approvals.Decide("bob", id, true, "bob", "")).error().code(),
            Code::kNotFound);
  ASSERT_TRUE(Wait(work_->approvals.Decide("ann", id, true, "ann", "fine")));
  Await(started.execution_id, {"succeeded"});
  EXPECT_TRUE(Wait(work_->approvals.Decide("ann", id, true, "ann", "")));
  EXPECT_EQ(Wait(work_->approvals.Decide("ann", id, false, "ann", "")).error().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(Events("approval_requested").size(), 1);
  EXPECT_EQ(Events("approval_decided").size(), 1);
}

TEST_F(TaskFlowTest, ARejectedPushEndsTheRun) {
  NewTask task = ATask();
  task.options = {{"approve_push", true}};
  Started started = Begin(task);
  Await(started.execution_id, {"waiting"});
  auto asked = Wait(work_->approvals.List("ann", {})).value();
  ASSERT_TRUE(Wait(work_->approvals.Decide("ann", asked.items.at(0).id, false, "ann", "ugly")));
  auto execution = Await(started.execution_id, {"failed"});
  EXPECT_NE(execution.error.find("ugly"), std::string::npos);
  EXPECT_EQ(workshop_.Count("pull request"), 0);
}

TEST_F(TaskFlowTest, TheFirstCommitOpensADraftThatIsReadyAtTheEnd) {
  config_.pull_request = "first_commit";
  workshop_.hold_agent = true;
  workshop_.agent_stdout = "{\"caisson\":\"summary\",\"text\":\"Mended.\"}\n";
  Started started = Begin(ATask());
  workshop_.early_commit = true;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (TaskOf(started.task_id).pull_request_number == 0 &&
         std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EXPECT_EQ(TaskOf(started.task_id).pull_request_state, "draft");
  EXPECT_EQ(TaskOf(started.task_id).status, "in_progress");
  EXPECT_TRUE(workshop_.last_request.draft);
  EXPECT_EQ(workshop_.Count("push task-" + started.task_id), 1);
  workshop_.hold_agent = false;
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(started.task_id).pull_request_state, "open");
  EXPECT_EQ(workshop_.Count("complete"), 1);
  EXPECT_NE(workshop_.last_request.body.find("Mended."), std::string::npos);
  EXPECT_EQ(Events("pr_created").size(), 1);
}

TEST_F(TaskFlowTest, AnEarlyDraftStaysOneIfItShall) {
  config_.pull_request = "first_commit";
  workshop_.early_commit = workshop_.hold_agent = true;
  NewTask task = ATask();
  task.options = {{"draft", true}};
  Started started = Begin(task);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (TaskOf(started.task_id).pull_request_number == 0 &&
         std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  workshop_.hold_agent = false;
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(started.task_id).pull_request_state, "draft");
}

TEST_F(TaskFlowTest, AnAgentWithoutCommitsOfItsOwnHasNoDraft) {
  config_.pull_request = "first_commit";
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(started.task_id).pull_request_state, "open");
  EXPECT_EQ(workshop_.Count("pull request"), 1);
  EXPECT_EQ(workshop_.Count("complete"), 0);
}

TEST_F(TaskFlowTest, ADraftThatFailsDoesNotEndTheWork) {
  config_.pull_request = "first_commit";
  workshop_.early_commit = workshop_.hold_agent = true;
  workshop_.FailNext("push", Error(Code::kUnavailable, "no answer"));
  bool tried = false;
  workshop_.on_push = [&tried] { tried = true; };
  Started started = Begin(ATask());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!tried && std::chrono::steady_clock::now() < deadline) Wait(Pause());
  EXPECT_TRUE(tried);
  workshop_.hold_agent = false;
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(started.task_id).pull_request_state, "open");
}

TEST_F(TaskFlowTest, NothingIsPushedEarlyThatAPersonHasToAgreeTo) {
  config_.pull_request = "first_commit";
  workshop_.early_commit = true;
  NewTask task = ATask();
  task.options = {{"approve_push", true}};
  Started started = Begin(task);
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("push task-" + started.task_id), 0);
  EXPECT_EQ(workshop_.Count("pull request"), 0);
}

TEST_F(TaskFlowTest, CancelReachesTheOneWhoWatchesForCommits) {
  config_.pull_request = "first_commit";
  workshop_.hold_agent = true;
  Started started = Begin(ATask());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("agent") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EXPECT_TRUE(Wait(work_->tasks.Cancel("ann", started.task_id, "no longer needed")).value());
  Await(started.execution_id, {"canceled"});
  workshop_.early_commit = true;
  Wait(Pause());
  EXPECT_EQ(workshop_.Count("first commit"), 0);
}

TEST_F(TaskFlowTest, WorkOutlivesItsSandbox) {
  workshop_.hold_agent = true;
  workshop_.agent_stdout = "done\n";
  workshop_.leave_at = FakeWorkshop::Clock::now() + std::chrono::milliseconds(200);
  Started started = Begin(ATask());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("renew") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  workshop_.hold_agent = false;
  auto execution = Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(execution.sandbox_id, "sandbox-2");
  EXPECT_EQ(workshop_.Count("renew"), 1);
  EXPECT_EQ(workshop_.Count("clone"), 1);
  EXPECT_EQ(workshop_.Count("pull request"), 1);
  auto told = DataOf("log");
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(TextOf(told[0], "message"),
            "sandbox sandbox-1 has lived as long as it may; the work goes on in sandbox-2");
  EXPECT_EQ(Wait(work_->costs.List("ann", {.kind = "sandbox"}))->total, 2);
  std::string text;
  for (const json::object& data : DataOf("command_output")) text += TextOf(data, "output");
  EXPECT_EQ(text, "done\n");
}

TEST_F(TaskFlowTest, AMoveThatFailsIsTriedAgain) {
  workshop_.leave_at = FakeWorkshop::Clock::now();
  workshop_.FailNext("renew", Error(Code::kUnavailable, "no answer"));
  Started started = Begin(ATask());
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("renew"), 2);
  EXPECT_EQ(workshop_.Count("agent"), 1);
}

TEST_F(TaskFlowTest, WorkThatWaitsForAPersonOutlivesItsSandbox) {
  NewTask task = ATask();
  task.options = {{"approve_push", true}};
  workshop_.on_commit = [this] {
    workshop_.leave_at = FakeWorkshop::Clock::now() + std::chrono::seconds(1);
  };
  Started started = Begin(task);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("renew") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EXPECT_EQ(workshop_.Count("push task-" + started.task_id), 0);
  Await(started.execution_id, {"waiting"});
  auto asked = Wait(work_->approvals.List("ann", {.state = "pending"})).value();
  ASSERT_EQ(asked.total, 1);
  EXPECT_EQ(Events("approval_requested").size(), 1);
  ASSERT_TRUE(Wait(work_->approvals.Decide("ann", asked.items[0].id, true, "ann", "fine")));
  EXPECT_EQ(Await(started.execution_id, {"succeeded"}).sandbox_id, "sandbox-2");
  EXPECT_EQ(workshop_.Count("push task-" + started.task_id), 1);
}

TEST_F(TaskFlowTest, AnAgentThatSleepsIsWokenByTheClock) {
  auto sleeping = [](Time until) {
    json::object line{{"caisson", "event"},
                      {"type", "agent.sleeping"},
                      {"data",
                       {{"until", FormatTime(until)},
                        {"spent_microdollars", 3'000},
                        {"limit_microdollars", 2'900}}}};
    return json::serialize(line) + "\n";
  };
  workshop_.agent_stdout = sleeping(Now() + std::chrono::hours(20));
  workshop_.agent_result.exit_code = 1;
  agent_ = Agent("Ida", "builtin").id;
  NewTask task = ATask();
  task.agent_id = agent_;
  auto started = Wait(work_->tasks.CreateAndStart("ann", std::move(task))).value();
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("rest"), 1);
  EXPECT_EQ(workshop_.Count("end agent"), 0) << "it goes on later";
  auto run = Write([&](Tx& tx) { return tx.Get<store::RunRow>(started.run_id); }).value();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->error, "");
  auto step = Write([&](Tx& tx) {
                return tx.First(store::Select<store::StepRow>()
                                    .Eq(&store::StepRow::run_id, started.run_id)
                                    .Eq(&store::StepRow::name, "agent"));
              }).value();
  ASSERT_TRUE(step && step->wait_until);
  EXPECT_GT(*step->wait_until, Now() + std::chrono::hours(19));
  // The day is over.
  workshop_.agent_stdout += "{\"caisson\":\"summary\",\"text\":\"Slept well.\"}\n";
  workshop_.agent_result.exit_code = 0;
  step->wait_until = Now();
  ASSERT_TRUE(Write([&](Tx& tx) { return tx.Update(*step); }));
  engine_->Wake();
  EXPECT_EQ(Await(started.execution_id, {"succeeded"}).summary, "Slept well.");
  EXPECT_EQ(workshop_.Count("agent"), 2);
  EXPECT_EQ(workshop_.Count("rest"), 1);
}

TEST_F(TaskFlowTest, APausedSquadStopsBeforeTheNextStep) {
  workshop_.hold_agent = true;
  auto squad = Wait(work_->squads.Create("ann", {.name = "S"})).value();
  NewTask task = ATask();
  task.squad_id = squad.row.id;
  Started started = Begin(task);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("agent") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  ASSERT_TRUE(Wait(work_->squads.Pause("ann", squad.row.id)));
  workshop_.hold_agent = false;
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("commit"), 0);
  ASSERT_TRUE(Wait(work_->squads.Resume("ann", squad.row.id)));
  Await(started.execution_id, {"succeeded"});
}

TEST_F(TaskFlowTest, ABranchOfSomebodyElseIsLeftAlone) {
  NewTask task = ATask();
  task.options = {{"branch_name", "fence"}};
  workshop_.taken["fence"] = true;
  Started started = Begin(task);
  Await(started.execution_id, {"succeeded"});
  EXPECT_TRUE(TaskOf(started.task_id).git_branch.starts_with("fence-"));
}

TEST_F(TaskFlowTest, OutputIsToldOnceOverARestart) {
  const std::string said = "{\"caisson\":\"message\",\"text\":\"hello\"}\n";
  workshop_.agent_stdout = "one\n" + said;
  Started started = Begin(ATask());
  auto execution = Await(started.execution_id, {"succeeded"});
  // The output as a server sees it that takes over in the middle: from its beginning.
  auto told = Write([&](Tx& tx) {
                return ToldOutput(tx, started.execution_id, execution.sandbox_id);
              }).value();
  EXPECT_EQ(told.stdout_end, static_cast<int64_t>(workshop_.agent_stdout.size()));
  Platform all = platform();
  AgentOutput output(all, *FindAdapter("command"), told, [&](std::string type, json::object data) {
    return About(execution, std::move(type), std::move(data));
  });
  output.Take(sdk::Stream::kStdout, "one\n" + said.substr(0, 5));
  output.Take(sdk::Stream::kStdout, said.substr(5) + "four\n");
  output.Take(sdk::Stream::kStdout, "five\n");
  testing::Await(io_, log_->Flush());
  std::string text;
  for (const json::object& data : DataOf("command_output")) text += TextOf(data, "output");
  EXPECT_EQ(text, "one\n" + said + "four\nfive\n");
  EXPECT_EQ(DataOf("message").size(), 1u);
}

TEST_F(TaskFlowTest, ARunGoesOnInTheNextServer) {
  workshop_.hold_agent = true;
  Started started = Begin(ATask());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("agent") == 0 && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EndServer();
  workshop_.hold_agent = false;
  BeginServer();
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("pull request"), 1);
  EXPECT_EQ(Events("execution_started").size(), 1);
}

}  // namespace
}  // namespace caisson::work
