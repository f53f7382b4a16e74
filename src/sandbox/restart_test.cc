// What a new server process makes of the old one's sandboxes: rows against the engine.
#include "sandbox/manager_fixture.h"
#include "sandbox/secrets.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

// One row of each state against one engine state of each kind.
class RestartTest : public ManagerFixture {
 protected:
  // A sandbox whose row says `paused` or running, and a server that is gone.
  std::string Leave(bool paused) {
    StartServer();
    std::string id = Make().id;
    if (paused) EXPECT_TRUE(Wait(manager_->Pause("admin", id, true)));
    StopServer();
    return id;
  }
  void EngineHas(const std::string& id, std::string_view what) {
    auto spec = engine_.instances.contains(id) ? engine_.instances[id] : engine_.last_spec;
    spec.id = id;
    engine_.instances.erase(id);
    engine_.saved.erase(id);
    if (what == "running") engine_.instances[id] = spec;
    if (what == "saved") engine_.saved[id] = {.id = id, .at = Now()};
    if (what == "frozen")
      engine_.saved[id] = {.id = id, .tier = engine::Tier::kFrozen, .why_frozen = "because"};
  }
  std::optional<State> StateOf(const std::string& id) {
    auto info = manager_->Get("admin", id);
    return info ? std::optional(info->state) : std::nullopt;
  }
};

TEST_F(RestartTest, RunningAndSaved) {
  for (const char* what : {"saved", "frozen"}) {
    std::string id = Leave(false);
    EngineHas(id, what);
    StartServer();
    EXPECT_EQ(StateOf(id), State::kPaused);
    EXPECT_EQ(RowOf(id).state, "paused");
    EXPECT_EQ(EventOf(id, "paused").fields.at("reason"), "server_restarted");
    EXPECT_TRUE(Wait(manager_->Connect("admin", id, {}))->resumed);
    StopServer();
  }
}

TEST_F(RestartTest, RunningAndNothing) {
  std::string id = Leave(false);
  EngineHas(id, "nothing");
  StartServer();
  EXPECT_EQ(StateOf(id), std::nullopt);
  EXPECT_EQ(RowOf(id).reason, "server_down");
}

TEST_F(RestartTest, PausedAndSaved) {
  for (const char* what : {"saved", "frozen"}) {
    std::string id = Leave(true);
    EngineHas(id, what);
    StartServer();
    EXPECT_EQ(StateOf(id), State::kPaused);
    EXPECT_EQ(manager_->Get("admin", id)->saved.tier,
              what == std::string("saved") ? "memory" : what);
    EXPECT_TRUE(Wait(manager_->Connect("admin", id, {}))->resumed);
    StopServer();
  }
}

TEST_F(RestartTest, EnvdsOfServersWithoutInsideTokens) {
  for (bool paused : {false, true}) {
    std::string id = Leave(paused);
    envd_.asks_for = AccessToken("secret", id);
    if (paused) EngineHas(id, "saved");
    StartServer();
    if (paused) {
      EXPECT_TRUE(Wait(manager_->Connect("admin", id, {}))->resumed);
    }
    EXPECT_TRUE(Until([&] { return envd_.asks_for == InsideToken("secret", id); })) << paused;
    StopServer();
    envd_.asks_for.reset();
    engine_.instances.clear();
  }
}

TEST_F(RestartTest, PausedAndRunning) {
  std::string id = Leave(true);
  EngineHas(id, "running");
  StartServer();
  EXPECT_EQ(StateOf(id), State::kRunning);
  EXPECT_TRUE(manager_->FindRoute(id));
  EXPECT_EQ(EventOf(id, "resumed").fields.at("reason"), "server_restarted");
  EXPECT_EQ(envd_.inits.size(), 1u);
  EXPECT_GT(manager_->Get("admin", id)->end_at, Now() + 200s);
}

TEST_F(RestartTest, PausedAndRunningButEnvdDoesNotAnswer) {
  std::string id = Leave(true);
  EngineHas(id, "running");
  envd_.init_fails = Error(Code::kUnavailable, "no answer");
  StartServer();
  EXPECT_EQ(StateOf(id), State::kPaused);
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_TRUE(engine_.saved.contains(id));
}

TEST_F(RestartTest, PausedAndNothing) {
  std::string id = Leave(true);
  EngineHas(id, "nothing");
  StartServer();
  EXPECT_EQ(StateOf(id), std::nullopt);
  EXPECT_EQ(RowOf(id).reason, "saved_state_lost");
}

TEST_F(RestartTest, FrozenAndTheHostWasRestarted) {
  engine_.memory_tier = engine::Tier::kFrozen;
  std::string id = Leave(true);
  EngineHas(id, "nothing");
  auto row = RowOf(id);
  row.end_at = Time(1s);  // paused long before this machine was started
  ASSERT_TRUE(Wait(store_->UpdateSandbox(row, {.sandbox_id = id, .at = Now(), .type = "test"})));
  StartServer();
  EXPECT_EQ(RowOf(id).reason, "host_restarted");
}

TEST_F(RestartTest, WhatNobodyKnowsIsDestroyed) {
  engine_.instances["iunknown"] = {};
  engine_.saved["ipaused"] = {.id = "ipaused"};
  engine_.saved["ifrozen"] = {.id = "ifrozen", .tier = engine::Tier::kFrozen};
  StartServer();
  EXPECT_TRUE(engine_.instances.empty());
  EXPECT_TRUE(engine_.saved.empty());
  EXPECT_TRUE(engine_.destroyed.contains("ifrozen"));
}

TEST_F(RestartTest, OneWhoseTimePassedMeanwhileIsPausedIfItShall) {
  StartServer();
  CreateOptions options = Options();
  options.timeout = 1s;
  options.lifecycle.auto_pause = true;
  std::string id = Make(options).id;
  StopServer();
  Sleep(1100ms);
  StartServer();
  EXPECT_TRUE(Until([&] { return StateOf(id) == State::kPaused; }));
  EXPECT_EQ(EventOf(id, "paused").fields.at("reason"), "timeout");
}

}  // namespace
}  // namespace caisson::sandbox
