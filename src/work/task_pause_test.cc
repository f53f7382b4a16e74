#include "work/sandbox_time.h"
#include "work/work_fixture.h"

namespace caisson::work {
namespace {

using namespace std::chrono_literals;

class TaskPauseTest : public WorkTest {
 protected:
  // A task whose agent works until `hold_agent` is taken back.
  Started Begin() {
    workshop_.hold_agent = true;
    NewTask task = ATask();
    task.agent_id = Agent("Ada").id;
    auto started = Wait(work_->tasks.CreateAndStart("ann", std::move(task)));
    EXPECT_TRUE(started) << started.error().message();
    return *started;
  }
  Started BeginAgent() {
    Started started = Begin();
    AwaitCall("agent");
    return started;
  }
  void AwaitCall(const std::string& call) {
    auto deadline = std::chrono::steady_clock::now() + 60s;
    while (workshop_.Count(call) == 0 && std::chrono::steady_clock::now() < deadline)
      Wait(WorkTest::Pause());
    EXPECT_GT(workshop_.Count(call), 0) << call;
  }
  Result<TaskView> Pause(const std::string& id, const std::string& owner = "ann") {
    return Wait(work_->tasks.Pause(owner, id, "lunch"));
  }
  Result<TaskView> Resume(const std::string& id) { return Wait(work_->tasks.Resume("ann", id)); }
  store::StepRow StepOf(const Started& started, const std::string& name) {
    for (const store::StepRow& step : ExecutionOf(started.execution_id).steps)
      if (step.name == name) return step;
    ADD_FAILURE() << "there is no step " << name;
    return {};
  }
};

TEST_F(TaskPauseTest, AnAgentAtWorkStandsStillAndGoesOn) {
  Started started = BeginAgent();
  auto paused = Pause(started.task_id);
  ASSERT_TRUE(paused) << paused.error().message();
  EXPECT_TRUE(paused->row.paused_at);
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("rest"), 1);
  EXPECT_EQ(workshop_.Count("end agent"), 0);
  EXPECT_EQ(TaskOf(started.task_id).status, "in_progress");
  EXPECT_EQ(TaskOf(started.task_id).pause_reason, "lunch");
  ASSERT_TRUE(Pause(started.task_id));  // once more is fine
  workshop_.hold_agent = false;
  auto resumed = Resume(started.task_id);
  ASSERT_TRUE(resumed);
  EXPECT_FALSE(resumed->row.paused_at);
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("agent"), 2);  // the second one follows the first
  EXPECT_EQ(StepOf(started, "agent").attempt, 1);
  ASSERT_EQ(DataOf("task_paused").size(), 1);
  EXPECT_EQ(TextOf(DataOf("task_paused")[0], "reason"), "lunch");
  EXPECT_EQ(DataOf("task_resumed").size(), 1);
}

TEST_F(TaskPauseTest, APauseSurvivesTheServer) {
  Started started = BeginAgent();
  ASSERT_TRUE(Pause(started.task_id));
  Await(started.execution_id, {"waiting"});
  EndServer();
  workshop_.hold_agent = false;
  BeginServer();
  for (int i = 0; i < 10; ++i) Wait(WorkTest::Pause());
  EXPECT_EQ(ExecutionOf(started.execution_id).row.status, "waiting");
  EXPECT_EQ(workshop_.Count("agent"), 1);
  ASSERT_TRUE(Resume(started.task_id));
  Await(started.execution_id, {"succeeded"});
}

TEST_F(TaskPauseTest, AServerThatFindsAPausedTaskPutsItsSandboxAway) {
  Started started = BeginAgent();
  EndServer();  // before it could do anything about the pause
  BeginServer(/*works=*/false);
  ASSERT_TRUE(Pause(started.task_id));
  EndServer();
  BeginServer();
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("rest"), 1);
  EXPECT_EQ(workshop_.Count("agent"), 1);
  workshop_.hold_agent = false;
  ASSERT_TRUE(Resume(started.task_id));
  Await(started.execution_id, {"succeeded"});
}

TEST_F(TaskPauseTest, OneThatHasNotBegunWaitsBeforeItsFirstStep) {
  EndServer();
  BeginServer(/*works=*/false);
  Started started = Begin();
  ASSERT_TRUE(Pause(started.task_id));
  EndServer();
  BeginServer();
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("open"), 0);
  workshop_.hold_agent = false;
  ASSERT_TRUE(Resume(started.task_id));
  Await(started.execution_id, {"succeeded"});
}

TEST_F(TaskPauseTest, AResumeBeforeItWaitsIsNotMissed) {
  Started started = BeginAgent();
  workshop_.on_rest = [&]() -> Task<void> {
    workshop_.on_rest = nullptr;
    workshop_.hold_agent = false;
    auto resumed = co_await work_->tasks.Resume("ann", started.task_id);
    EXPECT_TRUE(resumed);
  };
  ASSERT_TRUE(Pause(started.task_id));
  Await(started.execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("rest"), 1);
}

TEST_F(TaskPauseTest, ASandboxThatCannotBePutAwayIsTriedAgain) {
  workshop_.FailNext("rest", Error(Code::kUnavailable, "no answer"));
  Started started = BeginAgent();
  ASSERT_TRUE(Pause(started.task_id));
  Await(started.execution_id, {"waiting"});
  store::StepRow step = StepOf(started, "agent");
  ASSERT_TRUE(step.wait_until);
  EXPECT_LT(*step.wait_until, Now() + 1min);
  step.wait_until = Now();
  ASSERT_TRUE(Write([&](Tx& tx) { return tx.Update(step); }));
  engine_->Wake();
  auto deadline = std::chrono::steady_clock::now() + 60s;
  while (workshop_.Count("rest") < 2 && std::chrono::steady_clock::now() < deadline)
    Wait(WorkTest::Pause());
  EXPECT_EQ(workshop_.Count("rest"), 2);
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(workshop_.Count("agent"), 1);
}

TEST_F(TaskPauseTest, APausedTaskCanBeCanceled) {
  Started started = BeginAgent();
  ASSERT_TRUE(Pause(started.task_id));
  Await(started.execution_id, {"waiting"});
  EXPECT_EQ(Wait(work_->tasks.Cancel("ann", started.task_id, "enough")).value(), true);
  EXPECT_EQ(Await(started.execution_id, {"canceled"}).error, "enough");
  store::TaskRow task = TaskOf(started.task_id);
  EXPECT_EQ(task.status, "canceled");
  EXPECT_FALSE(task.paused_at);
  EXPECT_EQ(task.pause_reason, "");
  EXPECT_EQ(workshop_.Count("destroy"), 1);
}

TEST_F(TaskPauseTest, OnlyWhatIsUnderWayInASandboxIsPaused) {
  std::string idle = AddTask(ATask());
  EXPECT_EQ(Pause(idle).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Resume(idle));
  EXPECT_EQ(Pause(idle, "bob").error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(work_->tasks.Resume("bob", idle)).error().code(), Code::kNotFound);
  std::string outside = AddTask(ATask());
  ASSERT_TRUE(Start(outside, Agent("Out", "external").id));
  EXPECT_NE(Pause(outside).error().message().find("outside"), std::string::npos);
}

TEST(SandboxTime, PausedTimeDoesNotCount) {
  Time begun = Now();
  store::WorkSandboxRow row{.created_at = begun};
  EXPECT_EQ(RunningTime(row, begun + 5s), 5s);
  CountPause(row, "pausing", begun + 9s);
  CountPause(row, "paused", begun + 10s);
  EXPECT_EQ(RunningTime(row, begun + 1h), 10s);
  CountPause(row, "resuming", begun + 1h);
  CountPause(row, "paused", begun + 1h);  // it did not work
  CountPause(row, "resuming", begun + 2h);
  CountPause(row, "running", begun + 2h);
  EXPECT_EQ(RunningTime(row, begun + 2h + 5s), 15s);
  CountPause(row, "paused", begun + 2h + 10s);
  CountPause(row, "terminated", begun + 3h);
  row.destroyed_at = begun + 3h;
  EXPECT_EQ(RunningTime(row, begun + 9h), 20s);
}

}  // namespace
}  // namespace caisson::work
