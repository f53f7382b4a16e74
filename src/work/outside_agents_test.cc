#include "work/outside_agents.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class OutsideAgentsTest : public WorkTest {
 protected:
  OutsideAgentsTest() : agent_(Agent("Far", "external")) {}
  std::optional<Claimed> Claim() {
    auto claimed =
        Wait(work_->outside_agents.Claim("ann", agent_.id, std::chrono::milliseconds(0)));
    EXPECT_TRUE(claimed) << claimed.error().message();
    return claimed ? *claimed : std::nullopt;
  }
  NewTask Mine(const std::string& title, const std::string& priority = "medium") {
    NewTask task = ATask(title);
    task.agent_id = agent_.id;
    task.priority = priority;
    return task;
  }
  store::AgentRow agent_;
};

TEST_F(OutsideAgentsTest, TakeTheMostUrgentTaskAndReport) {
  EXPECT_FALSE(Claim());
  AddTask(Mine("later"));
  std::string urgent = AddTask(Mine("now", "urgent"));
  auto claimed = Claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->task.id, urgent);
  EXPECT_EQ(TaskOf(urgent).status, "in_progress");
  // Asked again, it is the same one: the first answer may have been lost.
  EXPECT_EQ(Claim()->execution.id, claimed->execution.id);
  Report report{.execution_id = claimed->execution.id,
                .status = "succeeded",
                .summary = "done it",
                .branch = "b",
                .pull_request_url = "https://github.com/acme/garden/pull/9",
                .model = "m",
                .tokens_in = 5,
                .tokens_out = 6,
                .dollars = 0.25};
  auto ended = Wait(work_->outside_agents.Finish("ann", agent_.id, report));
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_EQ(ended->status, "succeeded");
  EXPECT_EQ(TaskOf(urgent).status, "in_review");
  EXPECT_EQ(TaskOf(urgent).pull_request_url, report.pull_request_url);
  EXPECT_TRUE(Wait(work_->outside_agents.Finish("ann", agent_.id, report)));
  EXPECT_EQ(Wait(work_->costs.List("ann", {.task_id = urgent}))->total, 1);
  report.status = "failed";
  EXPECT_EQ(Wait(work_->outside_agents.Finish("ann", agent_.id, report)).error().code(),
            Code::kFailedPrecondition);
}

TEST_F(OutsideAgentsTest, StartedTasksWaitForThem) {
  std::string id = AddTask(ATask());
  auto started = Start(id, agent_.id);
  ASSERT_TRUE(started) << started.error().message();
  EXPECT_EQ(started->run_id, "");
  EXPECT_EQ(TaskOf(id).status, "pending");
  EXPECT_EQ(Claim()->execution.id, started->execution_id);
  ASSERT_TRUE(Wait(work_->tasks.Cancel("ann", id, "enough")).value());
  EXPECT_EQ(TaskOf(id).status, "canceled");
  EXPECT_FALSE(Claim());
}

TEST_F(OutsideAgentsTest, NothingOfAPausedSquadIsClaimed) {
  auto squad = Wait(work_->squads.Create("ann", {.name = "S", .repo_url = "acme/garden"})).value();
  ASSERT_TRUE(Wait(work_->squads.Pause("ann", squad.row.id)));
  std::string held = AddTask(
      {.title = "held", .priority = "urgent", .agent_id = agent_.id, .squad_id = squad.row.id});
  EXPECT_FALSE(Claim());
  EXPECT_EQ(TaskOf(held).status, "pending");
  // It holds up none that is not the squad's.
  std::string other = AddTask(Mine("other"));
  auto claimed = Claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->task.id, other);
  ASSERT_TRUE(Wait(work_->outside_agents.Finish(
      "ann", agent_.id, {.execution_id = claimed->execution.id, .status = "succeeded"})));
  EXPECT_FALSE(Claim());
  ASSERT_TRUE(Wait(work_->squads.Resume("ann", squad.row.id)));
  claimed = Claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->task.id, held);
  EXPECT_EQ(claimed->task.repo_url, "acme/garden");  // as for one that the server starts
}

TEST_F(OutsideAgentsTest, SilentOnesLoseTheirTask) {
  std::string id = AddTask(Mine("t"));
  auto claimed = Claim();
  ASSERT_TRUE(claimed);
  ASSERT_TRUE(Wait(work_->outside_agents.Heartbeat("ann", agent_.id)));
  auto limit = std::chrono::seconds(config_.agent_heartbeat_s);
  EXPECT_EQ(Wait(work_->outside_agents.GiveBackSilent(Now() + limit / 2)).value(), 0);
  EXPECT_EQ(Wait(work_->outside_agents.GiveBackSilent(Now() + limit * 2)).value(), 1);
  EXPECT_EQ(TaskOf(id).status, "pending");
  auto late = Wait(work_->outside_agents.Finish(
      "ann", agent_.id, {.execution_id = claimed->execution.id, .status = "succeeded"}));
  EXPECT_EQ(late.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(Claim()->execution.id, claimed->execution.id);
}

TEST_F(OutsideAgentsTest, OnlyThatKindAsksForWork) {
  auto inside = Agent("Near");
  auto claimed = Wait(work_->outside_agents.Claim("ann", inside.id, std::chrono::milliseconds(0)));
  EXPECT_EQ(claimed.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(work_->outside_agents.Heartbeat("bob", agent_.id)).error().code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace caisson::work
