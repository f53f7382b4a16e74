#include "work/start_queue.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class StartQueueTest : public WorkTest {
 protected:
  Started StartWhenFree(const std::string& task_id, const std::string& agent_id = "") {
    auto started = Wait(work_->tasks.Start(
        {.owner_id = "ann", .task_id = task_id, .agent_id = agent_id, .when_free = true}));
    EXPECT_TRUE(started) << started.error().message();
    return started.value_or(Started());
  }
  TaskView ViewOfTask(const std::string& id) { return Wait(work_->tasks.Get("ann", id)).value(); }
  StartQueue::Look LookAt(std::set<std::string> owners) {
    return Wait(work_->start_queue.StartReady(std::move(owners))).value();
  }
  int64_t StartReady() { return LookAt({}).started; }
  // An agent that works on a task until `hold_agent` is taken back.
  Started Busy(const std::string& agent_id) {
    workshop_.hold_agent = true;
    auto started = Start(AddTask(ATask("Busy")), agent_id);
    EXPECT_TRUE(started) << started.error().message();
    return *started;
  }
  store::ExecutionRow LastExecution(const std::string& task_id) {
    auto listed = Wait(work_->executions.List("ann", task_id, {.limit = 1})).value();
    return listed.items.empty() ? store::ExecutionRow() : listed.items.front();
  }
};

TEST_F(StartQueueTest, ATaskWaitsForItsAgentInItsTurn) {
  std::string ada = Agent("Ada").id;
  Started busy = Busy(ada);
  std::string first = AddTask(ATask("First")), second = AddTask(ATask("Second"));
  EXPECT_EQ(Start(first, ada).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(StartWhenFree(first, ada).queued);
  EXPECT_TRUE(StartWhenFree(second, ada).queued);
  EXPECT_TRUE(StartWhenFree(first, ada).already);  // keeps its turn
  EXPECT_EQ(ViewOfTask(first).queue_position, 1);
  EXPECT_EQ(ViewOfTask(second).queue_position, 2);
  EXPECT_EQ(ViewOfTask(first).row.status, "pending");
  EXPECT_EQ(StartReady(), 0);
  workshop_.hold_agent = false;
  Await(busy.execution_id, {"succeeded"});
  workshop_.hold_agent = true;
  EXPECT_EQ(StartReady(), 1);
  EXPECT_EQ(ViewOfTask(first).row.status, "in_progress");
  EXPECT_FALSE(ViewOfTask(first).row.queued_at);
  EXPECT_EQ(ViewOfTask(second).queue_position, 1);
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, ItStartsByItselfAlsoAfterARestart) {
  std::string ada = Agent("Ada").id;
  Started busy = Busy(ada);
  std::string next = AddTask(ATask("Next"));
  ASSERT_TRUE(StartWhenFree(next, ada).queued);
  EndServer();
  BeginServer();
  work_->start_queue.Start();
  workshop_.hold_agent = false;
  Await(busy.execution_id, {"succeeded"});
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (TaskOf(next).status != "in_review" && std::chrono::steady_clock::now() < deadline)
    Wait(Pause());
  EXPECT_EQ(TaskOf(next).status, "in_review");
  EXPECT_EQ(LastExecution(next).agent_id, ada);
}

TEST_F(StartQueueTest, WhoeverIsFreeTakesATaskOfNobody) {
  std::string ada = Agent("Ada").id;
  Agent("Out", "external");
  Busy(ada);
  std::string task = AddTask(ATask());
  EXPECT_TRUE(StartWhenFree(task).queued);
  std::string bea = Agent("Bea").id;
  EXPECT_EQ(StartReady(), 1);
  EXPECT_EQ(TaskOf(task).agent_id, bea);
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, CancelAndMovesTakeItOut) {
  std::string ada = Agent("Ada").id;
  Busy(ada);
  std::string task = AddTask(ATask());
  ASSERT_TRUE(StartWhenFree(task, ada).queued);
  EXPECT_EQ(Wait(work_->tasks.Cancel("ann", task, "no")).value(), false);
  EXPECT_FALSE(TaskOf(task).queued_at);
  EXPECT_EQ(TaskOf(task).status, "pending");
  ASSERT_TRUE(StartWhenFree(task, ada).queued);
  ASSERT_TRUE(Wait(work_->tasks.MoveTo("ann", task, {.status = "backlog"})));
  EXPECT_FALSE(TaskOf(task).queued_at);
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, WhatCannotStartLetsOthersPass) {
  std::string ada = Agent("Ada").id, bea = Agent("Bea").id;
  Started busy = Busy(ada);
  std::string first = AddTask(ATask("First")), second = AddTask(ATask("Second"));
  ASSERT_TRUE(StartWhenFree(first, ada).queued);
  ASSERT_TRUE(Wait(work_->agents.Update("ann", bea, {.paused = true})));
  ASSERT_TRUE(StartWhenFree(second, bea).queued);
  ASSERT_TRUE(Wait(work_->agents.Update("ann", bea, {.paused = false})));
  EXPECT_EQ(StartReady(), 1);
  EXPECT_EQ(TaskOf(second).status, "in_progress");
  EXPECT_TRUE(TaskOf(first).queued_at);
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, OfThoseWhoWaitForTheSameOnlyTheFirstIsTried) {
  std::string ada = Agent("Ada").id, bea = Agent("Bea").id;
  Busy(ada);
  ASSERT_TRUE(Start(AddTask(ATask("Busy too")), bea));
  std::vector<std::string> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(AddTask(ATask()));
    ASSERT_TRUE(StartWhenFree(waiting.back(), i % 3 == 0 ? ada : i % 3 == 1 ? bea : "").queued);
  }
  StartQueue::Look look = LookAt({});
  EXPECT_EQ(look.tried, 3) << "one for Ada, one for Bea, one for whoever is free";
  EXPECT_EQ(look.started, 0);
  for (const std::string& id : waiting) EXPECT_TRUE(TaskOf(id).queued_at) << "none was lost";
  // Whoever comes takes the first of those that wait for anybody, and no other.
  Agent("Cleo");
  EXPECT_EQ(StartReady(), 1);
  EXPECT_EQ(TaskOf(waiting[2]).status, "in_progress");
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, AnEventOfOneOwnerIsNoneOfTheOthers) {
  std::string ada = Agent("Ada").id;
  Busy(ada);
  std::string task = AddTask(ATask());
  ASSERT_TRUE(StartWhenFree(task).queued);
  NewAgent theirs{.name = "Dan", .adapter = "command", .config = {{"command", {"true"}}}};
  std::string dan = Wait(work_->agents.Create("bob", theirs)).value().id;
  std::string of_bob = Wait(work_->tasks.Create("bob", ATask())).value().row.id;
  ASSERT_TRUE(Wait(work_->agents.Update("bob", dan, {.paused = true})));
  auto queued = Wait(work_->tasks.Start(
      {.owner_id = "bob", .task_id = of_bob, .agent_id = dan, .when_free = true}));
  ASSERT_TRUE(queued && queued->queued);
  ASSERT_TRUE(Wait(work_->agents.Update("bob", dan, {.paused = false})));
  Agent("Bea");
  EXPECT_EQ(LookAt({"nobody"}).tried, 0);
  StartQueue::Look look = LookAt({"ann"});
  EXPECT_EQ(look.tried, 1);
  EXPECT_EQ(look.started, 1);
  EXPECT_EQ(TaskOf(task).status, "in_progress");
  // A look at everybody finds the rest.
  look = LookAt({});
  EXPECT_EQ(look.tried, 1);
  EXPECT_EQ(look.started, 1);
  workshop_.hold_agent = false;
}

TEST_F(StartQueueTest, ABurstOfChangesLosesNobody) {
  std::string ada = Agent("Ada").id;
  Started busy = Busy(ada);
  std::vector<std::string> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(AddTask(ATask()));
    ASSERT_TRUE(StartWhenFree(waiting.back(), ada).queued);
  }
  work_->start_queue.Start();
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(Wait(work_->agents.Update("ann", ada, {.name = fmt::format("Ada {}", i)})));
  workshop_.hold_agent = false;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (const std::string& id : waiting) {
    while (TaskOf(id).status != "in_review" && std::chrono::steady_clock::now() < deadline)
      Wait(Pause());
    EXPECT_EQ(TaskOf(id).status, "in_review");
  }
}

}  // namespace
}  // namespace caisson::work
