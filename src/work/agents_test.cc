#include "work/agents.h"

#include "work/agent_config.h"
#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class AgentsTest : public WorkTest {};

TEST_F(AgentsTest, AreMadeChangedListedAndDeleted) {
  auto made = Agent("Ada");
  EXPECT_EQ(made.status, "idle");
  EXPECT_EQ(made.role, "developer");
  Agent("Grace", "external");
  auto changed = Wait(work_->agents.Update("ann", made.id, {.name = "Ada L.", .paused = true}));
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->status, "paused");
  EXPECT_EQ(Wait(work_->agents.List("ann", {}))->total, 2);
  EXPECT_EQ(Wait(work_->agents.List("ann", {.adapter = "external"}))->items.at(0).name, "Grace");
  EXPECT_EQ(Wait(work_->agents.List("ann", {.text = "ada"}))->total, 1);
  EXPECT_EQ(Wait(work_->agents.List("bob", {}))->total, 0);
  EXPECT_TRUE(Wait(work_->agents.Delete("ann", made.id)));
  EXPECT_EQ(Wait(work_->agents.Get("ann", made.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Events("agent_deleted").size(), 1);
}

TEST_F(AgentsTest, OfOthersAreNotThere) {
  auto made = Agent("Ada");
  EXPECT_EQ(Wait(work_->agents.Get("bob", made.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(work_->agents.Update("bob", made.id, {})).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(work_->agents.Delete("bob", made.id)).error().code(), Code::kNotFound);
}

TEST_F(AgentsTest, ThatWorkAreNotDeletedNorPaused) {
  workshop_.hold_agent = true;
  auto agent = Agent("Ada");
  auto started = Start(AddTask(ATask()), agent.id);
  ASSERT_TRUE(started) << started.error().message();
  EXPECT_EQ(Wait(work_->agents.Delete("ann", agent.id)).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(work_->agents.Update("ann", agent.id, {.paused = true})).error().code(),
            Code::kFailedPrecondition);
  workshop_.hold_agent = false;
  Await(started->execution_id, {"succeeded"});
}

TEST(AgentConfig, IsCheckedPerAdapter) {
  struct Case {
    std::string adapter;
    json::object config;
    std::string error;  // a part of it, "" if it is fine
  };
  const Case cases[] = {
      {"command", {{"command", json::array{"./x", "{task}"}}}, ""},
      {"command", {}, "config.command"},
      {"command", {{"command", "./x"}}, "list of texts"},
      {"command",
       {{"command", json::array{"x"}}, {"model", "m"}},
       "no setting of the adapter command"},
      {"claude", {{"model", "opus"}, {"max_turns", 5}, {"env", {{"A", "b"}}}}, ""},
      {"claude", {{"max_turns", 0}}, "from 1 to"},
      {"claude", {{"max_turns", "5"}}, "whole number"},
      {"claude", {{"env", {{"A=B", "c"}}}}, "impossible name"},
      {"claude", {{"env", {{"A", 1}}}}, "config.env.A"},
      {"codex", {{"args", json::array{"--full-auto"}}, {"model_keys", "environment"}}, ""},
      {"codex", {{"model_keys", "mine"}}, "broker or environment"},
      {"gemini", {{"approve_push", "yes"}}, "true or false"},
      {"external", {}, ""},
      {"external", {{"model", "x"}}, "it has none"},
      {"copilot", {}, "there is no adapter 'copilot'"},
  };
  for (const Case& one : cases) {
    auto checked = CheckAgentConfig(one.adapter, one.config);
    if (one.error.empty())
      EXPECT_TRUE(checked) << one.adapter << ": " << checked.error().message();
    else
      EXPECT_NE(checked.error().message().find(one.error), std::string::npos)
          << checked.error().message();
  }
}

}  // namespace
}  // namespace caisson::work
