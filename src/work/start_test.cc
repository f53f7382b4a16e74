#include "work/start.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class StartTest : public WorkTest {};

TEST_F(StartTest, TwiceIsOnce) {
  workshop_.hold_agent = true;
  auto agent = Agent("Ada");
  std::string id = AddTask(ATask());
  auto first = Start(id, agent.id), second = Start(id, agent.id), third = Start(id);
  ASSERT_TRUE(first && second && third);
  EXPECT_FALSE(first->already);
  EXPECT_TRUE(second->already && third->already);
  EXPECT_EQ(second->execution_id, first->execution_id);
  auto other = Agent("Grace");
  EXPECT_EQ(Start(id, other.id).error().code(), Code::kFailedPrecondition);
  workshop_.hold_agent = false;
  Await(first->execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("agent"), 1);
}

TEST_F(StartTest, AnAgentDoesOneTaskAtATime) {
  workshop_.hold_agent = true;
  auto agent = Agent("Ada");
  auto started = Start(AddTask(ATask("one")), agent.id);
  ASSERT_TRUE(started);
  auto busy = Start(AddTask(ATask("two")), agent.id);
  EXPECT_EQ(busy.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(busy.error().message().find("#1 one"), std::string::npos) << busy.error().message();
  workshop_.hold_agent = false;
  Await(started->execution_id, {"succeeded"});
  EXPECT_TRUE(Start(TaskOf(AddTask(ATask("three"))).id, agent.id));
}

TEST_F(StartTest, ASquadGivesItsFreeMember) {
  workshop_.hold_agent = true;
  auto ada = Agent("Ada"), grace = Agent("Grace");
  auto squad = Wait(work_->squads.Create("ann", {.name = "Gardeners",
                                                 .repo_url = "https://github.com/acme/garden",
                                                 .members = {{ada.id, ""}, {grace.id, "lead"}}}));
  ASSERT_TRUE(squad) << squad.error().message();
  EXPECT_EQ(squad->members[0].row.role, "developer");
  std::vector<std::string> executions;
  for (int i = 0; i < 2; ++i) {
    // The repository is the squad's.
    auto started = Start(AddTask({.title = "t", .squad_id = squad->row.id}));
    ASSERT_TRUE(started) << started.error().message();
    executions.push_back(started->execution_id);
  }
  EXPECT_NE(ExecutionOf(executions[0]).row.agent_id, ExecutionOf(executions[1]).row.agent_id);
  auto none = Start(AddTask({.title = "t", .squad_id = squad->row.id}));
  EXPECT_EQ(none.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(work_->squads.Delete("ann", squad->row.id)).error().code(),
            Code::kFailedPrecondition);
  workshop_.hold_agent = false;
  for (const std::string& id : executions) Await(id, {"succeeded"});
}

TEST_F(StartTest, NeedsAnAgentAndARunningSquad) {
  auto agent = Agent("Ada");
  EXPECT_EQ(Start(AddTask(ATask())).error().code(), Code::kFailedPrecondition);
  auto squad = Wait(work_->squads.Create("ann", {.name = "S", .members = {{agent.id, ""}}}));
  ASSERT_TRUE(Wait(work_->squads.Pause("ann", squad->row.id)));
  NewTask task = ATask();
  task.squad_id = squad->row.id;
  std::string id = AddTask(task);
  EXPECT_EQ(Start(id).error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Wait(work_->squads.Resume("ann", squad->row.id)));
  auto started = Start(id);
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"succeeded"});
}

TEST_F(StartTest, AUsedUpBudgetStopsWhenTheSettingSaysSo) {
  config_.budget_month_dollars = "1";
  auto agent = Agent("Ada");
  ASSERT_TRUE(Write([this](Tx& tx) {
    Platform all = platform();
    return RecordCost(
        tx, all, {.id = "c1", .owner_id = "ann", .kind = "model", .dollars = 1.5, .at = Now()});
  }));
  auto warned = Start(AddTask(ATask()), agent.id);
  ASSERT_TRUE(warned) << warned.error().message();
  Await(warned->execution_id, {"succeeded"});
  config_.budget_action = "stop";
  EXPECT_EQ(Start(AddTask(ATask()), agent.id).error().code(), Code::kResourceExhausted);
}

TEST_F(StartTest, CommitsFollowTheTemplateAndABadOneRefuses) {
  config_.commit_template = "{type}: {title} (#{number}, {agent})";
  auto agent = Agent("Ada");
  auto started = Start(AddTask(ATask("Add a gate")), agent.id);
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.last_commit.message, "feat: Add a gate (#1, Ada)");
  config_.commit_template = "{kind}: {title}";
  std::string next = AddTask(ATask("Add a gate"));
  auto refused = Start(next, agent.id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message().find("commit_template holds {kind}"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(TaskOf(next).status, "pending");
}

TEST_F(StartTest, CreateAndStartIsAllOrNothing) {
  auto agent = Agent("Ada");
  NewTask task = ATask();
  task.agent_id = agent.id;
  config_.commit_template = "{kind}";
  EXPECT_FALSE(Wait(work_->tasks.CreateAndStart("ann", task)));
  EXPECT_EQ(Wait(work_->tasks.List("ann", {}))->total, 0);
  config_.commit_template = Config().commit_template;
  auto started = Wait(work_->tasks.CreateAndStart("ann", task));
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"succeeded"});
}

}  // namespace
}  // namespace caisson::work
