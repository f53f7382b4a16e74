#include "work/tasks.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class TasksTest : public WorkTest {};

TEST_F(TasksTest, AreNumberedFilteredAndPaged) {
  auto agent = Agent("Ada");
  for (int i = 1; i <= 5; ++i) {
    NewTask task = ATask("Task " + std::to_string(i));
    if (i % 2 == 0) task.priority = "urgent";
    if (i == 3) task.agent_id = agent.id;
    if (i == 4) task.status = "backlog";
    AddTask(task);
  }
  auto all = Wait(work_->tasks.List("ann", {.page = {.limit = 2, .offset = 1}}));
  ASSERT_EQ(all->items.size(), 2);
  EXPECT_EQ(all->total, 5);
  EXPECT_EQ(all->items[0].row.number, 4);
  auto total = [&](TaskFilter filter) { return Wait(work_->tasks.List("ann", filter))->total; };
  EXPECT_EQ(total({.statuses = {"backlog"}}), 1);
  EXPECT_EQ(total({.statuses = {"backlog", "pending"}}), 5);
  EXPECT_EQ(total({.priorities = {"urgent"}}), 2);
  EXPECT_EQ(total({.agent_id = agent.id}), 1);
  EXPECT_EQ(total({.repo = "ACME/garden"}), 5);
  EXPECT_EQ(total({.text = "task 2"}), 1);
  EXPECT_EQ(Wait(work_->tasks.List("bob", {}))->total, 0);
}

TEST_F(TasksTest, AreCheckedAndTheReasonIsTold) {
  struct Case {
    NewTask task;
    std::string error;
  };
  NewTask good = ATask();
  std::vector<Case> cases;
  auto add = [&](std::string error, auto change) {
    cases.push_back({good, std::move(error)});
    change(cases.back().task);
  };
  add("must not be empty", [](NewTask& t) { t.title = ""; });
  add("at most 500", [](NewTask& t) { t.title = std::string(501, 'x'); });
  add("control characters", [](NewTask& t) { t.title = "a\x1b[0m"; });
  add("priority must be one of", [](NewTask& t) { t.priority = "asap"; });
  add("pending or backlog", [](NewTask& t) { t.status = "done"; });
  add("there is no agent", [](NewTask& t) { t.agent_id = "nobody"; });
  add("there is no squad", [](NewTask& t) { t.squad_id = "nobody"; });
  add("there is no task", [](NewTask& t) { t.blocked_by = {"nothing"}; });
  add("an option of a task", [](NewTask& t) { t.options = {{"colour", "red"}}; });
  add("true or false", [](NewTask& t) { t.options = {{"draft", "no"}}; });
  for (Case& one : cases) {
    auto made = Wait(work_->tasks.Create("ann", one.task));
    ASSERT_FALSE(made) << one.error;
    EXPECT_NE(made.error().message().find(one.error), std::string::npos) << made.error().message();
  }
  // 500 characters, not bytes.
  NewTask umlauts = good;
  umlauts.title = "";
  for (int i = 0; i < 500; ++i) umlauts.title += "ü";
  EXPECT_TRUE(Wait(work_->tasks.Create("ann", umlauts)));
}

TEST_F(TasksTest, WaitForOthersButNeverInACircle) {
  std::string a = AddTask(ATask("a"));
  NewTask second = ATask("b");
  second.blocked_by = {a};
  std::string b = AddTask(second);
  NewTask third = ATask("c");
  third.blocked_by = {b};
  std::string c = AddTask(third);
  EXPECT_EQ(Wait(work_->tasks.Get("ann", a))->blocks, std::vector<std::string>{b});
  EXPECT_EQ(Wait(work_->tasks.Get("ann", c))->blocked_by, std::vector<std::string>{b});
  auto circle = Wait(work_->tasks.Update("ann", a, {.blocked_by = {{c}}}));
  EXPECT_EQ(circle.error().code(), Code::kInvalidArgument);
  auto self = Wait(work_->tasks.Update("ann", a, {.blocked_by = {{a}}}));
  EXPECT_EQ(self.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Wait(work_->tasks.Get("ann", a))->blocked_by.empty());

  auto agent = Agent("Ada");
  auto early = Start(b, agent.id);
  EXPECT_EQ(early.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(early.error().message().find("#1 a"), std::string::npos) << early.error().message();
  ASSERT_TRUE(Wait(work_->tasks.MoveTo("ann", a, {.status = "done"})));
  auto started = Start(b, agent.id);
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"succeeded"});
}

TEST_F(TasksTest, StandInColumnsWithCounts) {
  auto free = Agent("Ada");
  auto paused = Agent("Grace");
  ASSERT_TRUE(Wait(work_->agents.Update("ann", paused.id, {.paused = true})));
  std::string a = AddTask(ATask("a")), b = AddTask(ATask("b")), c = AddTask(ATask("c"));
  // Between the two others.
  ASSERT_TRUE(Wait(work_->tasks.MoveTo("ann", c, {.status = "pending", .position = 1.5})));
  ASSERT_TRUE(Wait(work_->tasks.MoveTo("ann", b, {.status = "done"})));
  auto board = Wait(work_->tasks.GetBoard("ann", "", 10));
  ASSERT_EQ(board->columns.size(), 7);
  EXPECT_EQ(board->columns[1].column.title, "Pending");
  EXPECT_EQ(board->columns[1].count, 2);
  EXPECT_EQ(board->columns[1].tasks[0].row.id, a);
  EXPECT_EQ(board->columns[1].tasks[1].row.id, c);
  EXPECT_EQ(board->columns[4].count, 1);
  EXPECT_NE(board->columns[4].tasks[0].row.completed_at, std::nullopt);
  EXPECT_EQ(board->agents, 1);
  EXPECT_EQ(board->free_agents, 1);
  EXPECT_EQ(Wait(work_->tasks.GetBoard("bob", "", 10))->columns[1].count, 0);
}

TEST_F(TasksTest, GoBackFromReviewOnlyWithFeedbackWhichTheAgentGets) {
  auto agent = Agent("Ada");
  std::string id = AddTask(ATask());
  auto first = Start(id, agent.id);
  Await(first->execution_id, {"succeeded"});
  EXPECT_EQ(TaskOf(id).status, "in_review");
  auto silent = Wait(work_->tasks.MoveTo("ann", id, {.status = "in_progress"}));
  EXPECT_EQ(silent.error().code(), Code::kInvalidArgument);
  auto moved = Wait(
      work_->tasks.MoveTo("ann", id, {.status = "in_progress", .feedback = "Use oak, not pine"}));
  ASSERT_TRUE(moved) << moved.error().message();
  auto executions = Wait(work_->executions.List("ann", id, {}));
  ASSERT_EQ(executions->total, 2);
  std::string second = executions->items[0].id == first->execution_id ? executions->items[1].id
                                                                      : executions->items[0].id;
  Await(second, {"succeeded"});
  EXPECT_NE(workshop_.last_command.stdin_text.find("Use oak, not pine"), std::string::npos);
  // The same branch, so the same pull request, which is told once.
  EXPECT_EQ(Events("pr_created").size(), 1);
  EXPECT_EQ(TaskOf(id).feedback, "");
}

TEST_F(TasksTest, WithoutAPullRequestHaveNothingToReview) {
  std::string id = AddTask(ATask());
  auto moved = Wait(work_->tasks.MoveTo("ann", id, {.status = "in_review"}));
  EXPECT_EQ(moved.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(work_->tasks.MoveTo("ann", id, {.status = "limbo"})).error().code(),
            Code::kInvalidArgument);
}

TEST_F(TasksTest, OfOthersAreNotThere) {
  std::string id = AddTask(ATask());
  EXPECT_EQ(Wait(work_->tasks.Get("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(work_->tasks.Delete("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(work_->tasks.MoveTo("bob", id, {.status = "done"})).error().code(),
            Code::kNotFound);
  EXPECT_EQ(Wait(work_->executions.List("bob", id, {})).error().code(), Code::kNotFound);
  EXPECT_TRUE(Wait(work_->tasks.Delete("ann", id)));
  EXPECT_EQ(Events("task_deleted").size(), 1);
}

}  // namespace
}  // namespace caisson::work
