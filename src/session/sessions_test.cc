#include "session/sessions.h"

#include "session/session_fixture.h"
#include "session/status.h"
#include "session/tier_models.h"
#include "store/person_rows.h"

namespace caisson::session {
namespace {

using namespace std::chrono_literals;

class SessionsTest : public SessionTest {};

TEST_F(SessionsTest, ASandboxIsMadeBehindTheAnswer) {
  provider_.create_takes = 20ms;
  SessionView made = Begin({.title = "A garden"});
  EXPECT_EQ(made.row.status, "provisioning");
  EXPECT_EQ(made.row.sandbox_id, "");
  AwaitStatus(made.row.id, "active");
  store::SessionRow row = RowOf(made.row.id);
  EXPECT_EQ(row.status_reason, "created");
  EXPECT_TRUE(provider_.sandboxes.contains(row.sandbox_id));
  EXPECT_EQ(provider_.last_options.metadata.at("sessionId"), row.id);
  EXPECT_TRUE(provider_.last_options.sleeps);
  auto told = DataOf("session_updated");
  ASSERT_EQ(told.size(), 2);
  EXPECT_EQ(work::TextOf(told[0], "status"), "provisioning");
  EXPECT_EQ(work::TextOf(told[1], "status"), "active");
}

TEST_F(SessionsTest, ManyOpensMakeOne) {
  provider_.create_takes = 20ms;
  std::string id = Begin().row.id;
  std::vector<std::string> sandboxes;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 4; ++i)
    group.Spawn("open",
                [](Sessions& all, std::string which, std::vector<std::string>& to) -> Task<void> {
                  auto opened = co_await all.Provision("ann", which);
                  to.push_back(opened ? opened->sandbox.id : opened.error().message());
                }(*sessions_, id, sandboxes));
  EXPECT_TRUE(testing::Await(io_, group.Join(20s)));
  EXPECT_EQ(std::set<std::string>(sandboxes.begin(), sandboxes.end()).size(), 1u);
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SessionsTest, AFailedProvisionIsToldAndCanBeTriedAgain) {
  provider_.create_fails = Error(Code::kUnavailable, "no room");
  std::string id = Begin().row.id;
  Until([&] { return DataOf("session_updated").size() > 1; });
  AwaitStatus(id, "error");
  EXPECT_EQ(RowOf(id).error, "create_failed: no room");
  Until([&] { return provider_.creates >= config_.flow_attempts; });  // it tries no more by itself
  provider_.create_fails.reset();
  auto opened = Wait(sessions_->Provision("ann", id));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(RowOf(id).status, "active");
  EXPECT_EQ(RowOf(id).error, "");
  EXPECT_EQ(provider_.sandboxes.size(), 1u);  // by us, or by the run that tried again
}

TEST_F(SessionsTest, AMessageDoesNotWaitForEverForItsSandbox) {
  config_.session_provision_wait_s = 1;
  provider_.create_takes = std::chrono::seconds(60);
  std::string id = Begin({.agent_id = agent_, .message = "hello"}).row.id;
  Until([&] { return MessagesOf(id)[1].state == "failed"; });
  EXPECT_EQ(MessagesOf(id)[1].error.find("provision_timeout: "), 0U) << MessagesOf(id)[1].error;
  EXPECT_EQ(RowOf(id).status, "error");
  EXPECT_EQ(RowOf(id).error, MessagesOf(id)[1].error);
}

TEST_F(SessionsTest, AProvisionThatTakesTooLongIsToldAndGoesOn) {
  testing::Await(io_, engine_->Stop());  // nobody else makes it
  config_.session_provision_wait_s = 1;
  std::string id = Begin().row.id;
  provider_.create_takes = std::chrono::seconds(2);
  auto late = Wait(sessions_->Provision("ann", id));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().message().find("provision_timeout: "), 0U) << late.error().message();
  AwaitStatus(id, "active");
  EXPECT_EQ(provider_.creates, 1);
  provider_.create_takes = {};
  provider_.create_fails = Error(Code::kInternal, "no disk");
  std::string other = Begin().row.id;
  EXPECT_EQ(Wait(sessions_->Provision("ann", other)).error().code(), Code::kInternal);
}

TEST_F(SessionsTest, AServerThatComesLaterMakesTheSandbox) {
  testing::Await(io_, engine_->Stop());
  std::string id = Begin().row.id;
  EndServer();
  EXPECT_EQ(provider_.creates, 0);
  BeginServer();
  AwaitStatus(id, "active");
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SessionsTest, IdsOfOthersDoNotExist) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  EXPECT_EQ(Wait(sessions_->Get("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(sessions_->Pause("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(sessions_->Delete("bob", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(sessions_->Send("bob", id, "x", "build")).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(sessions_->Update("ann", id, {.agent_id = "nobody"})).error().code(),
            Code::kNotFound);
}

// ---- messages ------------------------------------------------------------------------

TEST_F(SessionsTest, MessagesHaveTheirTurnInOrder) {
  testing::Await(io_, engine_->Stop());  // nothing goes on
  std::string id = Begin({.agent_id = agent_, .message = "one"}).row.id;
  auto second = Wait(sessions_->Send("ann", id, "two", "plan"));
  ASSERT_TRUE(second) << second.error().message();
  auto messages = MessagesOf(id);
  ASSERT_EQ(messages.size(), 4);
  std::vector<std::string> states;
  for (const auto& message : messages) states.push_back(message.role + " " + message.state);
  EXPECT_EQ(states, (std::vector<std::string>{"user running", "assistant running", "user queued",
                                              "assistant queued"}));
  EXPECT_EQ(messages[3].reply_to, messages[2].id);
  EXPECT_EQ(RowOf(id).title, "one");
  EXPECT_EQ(Wait(sessions_->Get("ann", id)).value().answering, messages[1].id);

  EndServer();
  BeginServer();
  // No agent can be started here: each fails, and the next one begins.
  Until([&] { return MessagesOf(id)[3].state == "failed"; });
  messages = MessagesOf(id);
  EXPECT_EQ(messages[1].state, "failed");
  EXPECT_NE(messages[1].error, "");
  EXPECT_LE(*messages[1].finished_at, *messages[3].started_at);
  EXPECT_EQ(messages.size(), 4);
}

TEST_F(SessionsTest, StoppingEndsWhatRunsAndWhatWaits) {
  testing::Await(io_, engine_->Stop());
  std::string id = Begin({.agent_id = agent_, .message = "one"}).row.id;
  EXPECT_TRUE(Wait(sessions_->Send("ann", id, "two", "build")));
  EXPECT_EQ(Wait(sessions_->Update("ann", id, {.model = "large"})).error().code(),
            Code::kFailedPrecondition);
  EXPECT_TRUE(Wait(sessions_->StopAnswer("ann", id, /*all=*/true)));
  EndServer();
  BeginServer();
  Until([&] { return MessagesOf(id)[1].state == "stopped"; });
  EXPECT_EQ(MessagesOf(id)[3].state, "stopped");
  EXPECT_EQ(MessagesOf(id)[1].error, "stopped by its user");
  EXPECT_EQ(Wait(sessions_->StopAnswer("ann", id, true)).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(sessions_->Update("ann", id, {.model = "large"})).value().row.model, "large");
}

TEST_F(SessionsTest, ATierHasItsModel) {
  config_.build_tier = "free";
  config_.tier_models = "free=small, pro = large";
  std::string id = Begin({}).row.id;
  EXPECT_EQ(Begin({.model = "small"}).row.model, "small");
  auto refused = Wait(sessions_->Create("ann", {.model = "large"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(Wait(sessions_->Update("ann", id, {.model = "large"})).error().code(),
            Code::kPermissionDenied);
  // Another tier is for the sessions to come.
  ASSERT_TRUE(Wait(store_->Write([](store::Transaction& tx) -> Status {
    TRY_ASSIGN(auto user, tx.Need<store::UserRow>("ann", "user"));
    user.tier = "pro";
    return tx.Update(user);
  })));
  EXPECT_EQ(Begin({}).row.model, "large");
  EXPECT_EQ(Wait(sessions_->Get("ann", id)).value().row.model, "small");
  config_.tier_models = "";
  EXPECT_EQ(Begin({.model = "any"}).row.model, "any");
}

TEST_F(SessionsTest, AUserHasADefaultModel) {
  auto prefer = [this](std::string value) {
    EXPECT_TRUE(Write([value](Tx& tx) -> Status {
      TRY(tx.Delete(store::Select<store::PreferencesRow>()));
      return tx.Insert(store::PreferencesRow{.id = "ann", .value = value, .updated_at = Now()});
    }));
  };
  EXPECT_EQ(Begin({}).row.model, "");
  prefer(R"({"default_model":"large","theme":"dark"})");
  EXPECT_EQ(Begin({}).row.model, "large");
  EXPECT_EQ(Begin({.model = "small"}).row.model, "small");
  prefer(R"({"default_model":5})");
  EXPECT_EQ(Begin({}).row.model, "");
  // The model of a tier is no matter of taste.
  prefer(R"({"default_model":"large"})");
  config_.build_tier = "free";
  config_.tier_models = "free=small";
  EXPECT_EQ(Begin({}).row.model, "small");
}

TEST(TierModels, AreReadOrRefused) {
  EXPECT_TRUE(ParseTierModels(" ")->empty());
  EXPECT_EQ(ParseTierModels("a=b, c = d/e=f")->at("c"), "d/e=f");
  for (const char* bad : {"a", "a=", "=b", "a=b,", "a=b,a=c"})
    EXPECT_FALSE(ParseTierModels(bad)) << bad;
}

TEST_F(SessionsTest, TheQueueHasABound) {
  testing::Await(io_, engine_->Stop());
  config_.session_queue = 2;
  std::string id = Begin({.agent_id = agent_, .message = "0"}).row.id;
  EXPECT_TRUE(Wait(sessions_->Send("ann", id, "1", "build")));
  EXPECT_TRUE(Wait(sessions_->Send("ann", id, "2", "build")));
  EXPECT_EQ(Wait(sessions_->Send("ann", id, "3", "build")).error().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Wait(sessions_->Send("ann", Begin().row.id, "x", "build")).error().code(),
            Code::kFailedPrecondition);  // it has no agent
}

TEST_F(SessionsTest, MessagesPerMinuteAreCounted) {
  testing::Await(io_, engine_->Stop());
  config_.start_rate_limit = 2;
  EXPECT_FALSE(Wait(sessions_->Send("ann", Begin().row.id, "x", "build")));  // counts not
  std::string id = Begin({.agent_id = agent_, .message = "0"}).row.id;
  EXPECT_TRUE(Wait(sessions_->Send("ann", id, "1", "build")));
  auto refused = Wait(sessions_->Send("ann", id, "2", "build"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_GT(starts_.RetryAfter("ann").count(), 0);
  EXPECT_FALSE(Wait(sessions_->Create("ann", {.agent_id = agent_, .message = "x"})));
  EXPECT_TRUE(Wait(sessions_->Create("ann", {})));  // says nothing yet
  EXPECT_EQ(MessagesOf(id).size(), 4U);
}

TEST_F(SessionsTest, TheHistoryPagesBackwards) {
  testing::Await(io_, engine_->Stop());
  std::string id = Begin({.agent_id = agent_, .message = "0"}).row.id;
  for (int i = 1; i < 4; ++i)
    EXPECT_TRUE(Wait(sessions_->Send("ann", id, std::to_string(i), "build")));
  History last = Wait(sessions_->Messages("ann", id, 0, 3)).value();
  ASSERT_EQ(last.messages.size(), 3);
  EXPECT_TRUE(last.more);
  EXPECT_EQ(last.messages.back().seq, 8);
  History first = Wait(sessions_->Messages("ann", id, last.messages.front().seq, 10)).value();
  EXPECT_EQ(first.messages.size(), 5);
  EXPECT_EQ(first.messages.front().content, "0");
  EXPECT_FALSE(first.more);
}

// ---- sleeping ------------------------------------------------------------------------

TEST_F(SessionsTest, AnIdleOneSleepsAndTheTimeItRanIsCounted) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  testing::Await(io_, watch_->CheckIdle());
  EXPECT_EQ(RowOf(id).status, "active");  // it was just made
  Age(id, 301s);
  testing::Await(io_, watch_->CheckIdle());
  store::SessionRow row = RowOf(id);
  EXPECT_EQ(row.status, "paused");
  EXPECT_EQ(row.status_reason, "idle");
  EXPECT_EQ(provider_.sandboxes.at(row.sandbox_id).state, "paused");
  EXPECT_FALSE(row.running_since);
  EXPECT_EQ(DataOf("cost_recorded").size(), 1);
  // Looking does not wake it, opening does, and it is the same one.
  EXPECT_EQ(Wait(sessions_->Look("ann", id)).value().backend_state, "paused");
  EXPECT_EQ(RowOf(id).status, "paused");
  EXPECT_FALSE(Wait(sessions_->Provision("ann", id)).value().made);
  EXPECT_EQ(RowOf(id).sandbox_id, row.sandbox_id);
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SessionsTest, OnlyTheTimeItRanIsPaidFor) {
  config_.sandbox_hour_dollars = "3.6";
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  auto ran_for = [&](std::chrono::seconds time) {
    store::SessionRow row = RowOf(id);
    row.running_since = Now() - time;
    EXPECT_TRUE(Write([row](Tx& tx) { return tx.Update(row); }));
    EXPECT_TRUE(Wait(sessions_->Pause("ann", id)));
  };
  ran_for(100s);
  Age(id, 100'000s);  // it sleeps for more than a day
  EXPECT_TRUE(Wait(sessions_->Pause("ann", id)));
  EXPECT_TRUE(Wait(sessions_->Provision("ann", id)));
  ran_for(50s);
  auto costs = Write([](Tx& tx) {
                 return tx.List(store::Select<store::CostRow>().Order(&store::CostRow::at));
               }).value();
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_EQ(costs[0].sandbox_ms / 10'000, 10);
  EXPECT_EQ(costs[1].sandbox_ms / 10'000, 5);
  EXPECT_EQ(RowOf(id).running_ms / 10'000, 15);
  for (const store::CostRow& cost : costs) {
    EXPECT_EQ(cost.kind, "sandbox");
    EXPECT_NEAR(cost.dollars, static_cast<double>(cost.sandbox_ms) / 1e6, 1e-9);
  }
}

TEST_F(SessionsTest, TrafficKeepsItAwake) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  Age(id, 301s);
  provider_.sandboxes.at(RowOf(id).sandbox_id).last_traffic_at = Now() - 5s;
  testing::Await(io_, watch_->CheckIdle());
  EXPECT_EQ(RowOf(id).status, "active");
  EXPECT_LT(Now() - RowOf(id).last_used_at, 60s);
}

TEST_F(SessionsTest, WhatOthersDidToTheSandboxIsNoticed) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  std::string sandbox = RowOf(id).sandbox_id;
  provider_.sandboxes.at(sandbox).state = "paused";  // its time was over
  EXPECT_EQ(Wait(sessions_->Look("ann", id)).value().row.status, "paused");
  EXPECT_EQ(RowOf(id).status_reason, "outside");
  provider_.sandboxes.at(sandbox).state = "running";  // a request has woken it
  EXPECT_TRUE(Wait(sandboxes_->Reconcile()));
  testing::Await(io_, watch_->CheckIdle());
  EXPECT_EQ(RowOf(id).status, "active");
  EXPECT_EQ(RowOf(id).status_reason, "traffic");
  provider_.sandboxes.clear();
  EXPECT_TRUE(Wait(sessions_->Provision("ann", id)).value().made);
  EXPECT_NE(RowOf(id).sandbox_id, sandbox);
  ASSERT_EQ(MessagesOf(id).size(), 1);
  EXPECT_EQ(MessagesOf(id)[0].role, "system");
}

TEST_F(SessionsTest, APauseThatFailsIsNotAPause) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  provider_.pause_fails = Error(Code::kUnavailable, "not now");
  Status paused = Wait(sessions_->Pause("ann", id));
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().message(), "pause_failed: not now");
  EXPECT_EQ(RowOf(id).status, "active");
  provider_.pause_fails.reset();
  EXPECT_TRUE(Wait(sessions_->Pause("ann", id)));
  EXPECT_TRUE(Wait(sessions_->Pause("ann", id)));
  EXPECT_EQ(RowOf(id).status_reason, "request");
}

TEST_F(SessionsTest, TheOneUsedLongestAgoMakesRoom) {
  config_.session_max_running_per_user = 2;
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(Begin().row.id);
    AwaitStatus(ids.back(), "active");
  }
  EXPECT_EQ(RowOf(ids[0]).status, "paused");
  EXPECT_EQ(RowOf(ids[0]).status_reason, "room");
  EXPECT_EQ(RowOf(ids[1]).status, "active");
}

TEST_F(SessionsTest, OldOnesEndByThePolicy) {
  std::string id = Begin().row.id;
  AwaitStatus(id, "active");
  EXPECT_TRUE(Wait(sessions_->Pause("ann", id)));
  Age(id, 3'601s);
  testing::Await(io_, watch_->CheckOld());
  EXPECT_EQ(provider_.sandboxes.size(), 1u);  // "keep"
  config_.session_idle_end = "destroy";
  testing::Await(io_, watch_->CheckOld());
  EXPECT_TRUE(provider_.sandboxes.empty());
  EXPECT_EQ(RowOf(id).status, "paused");
  EXPECT_EQ(RowOf(id).sandbox_id, "");
  Age(id, 31 * 86'400s);
  testing::Await(io_, watch_->CheckOld());
  EXPECT_EQ(RowOf(id).status, "archived");
  EXPECT_EQ(Wait(sessions_->List("ann", {})).value().total, 0);
  EXPECT_TRUE(Wait(sessions_->Provision("ann", id)).value().made);
  EXPECT_FALSE(RowOf(id).archived_at);
}

TEST_F(SessionsTest, DeletingKillsTheSandboxAndGoesOnAfterACrash) {
  std::string id = Begin().row.id, other = Begin().row.id;
  AwaitStatus(id, "active");
  AwaitStatus(other, "active");
  EXPECT_TRUE(Wait(sessions_->Delete("ann", id)));
  EXPECT_EQ(provider_.sandboxes.size(), 1u);
  EXPECT_EQ(DataOf("session_deleted").size(), 1);
  // A server was killed in the middle of it.
  provider_.down = Error(Code::kUnavailable, "away");
  EXPECT_FALSE(Wait(sessions_->Delete("ann", other)));
  EXPECT_EQ(Wait(sessions_->Get("ann", other)).error().code(), Code::kNotFound);
  provider_.down.reset();
  testing::Await(io_, watch_->CheckOld());
  EXPECT_TRUE(provider_.sandboxes.empty());
  EXPECT_EQ(DataOf("session_deleted").size(), 2);
}

}  // namespace
}  // namespace caisson::session
