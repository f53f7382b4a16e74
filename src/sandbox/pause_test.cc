// Pause, resume, and being woken: who may, what is kept, what a failure leaves.
#include "sandbox/manager_fixture.h"
#include "sandbox/secrets.h"
#include "sandbox/turns.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using Types = std::vector<std::string>;

class PauseTest : public ManagerFixture {
 protected:
  Status Pause(const std::string& id, bool memory = true) {
    return Wait(manager_->Pause("admin", id, memory));
  }
  Result<Connected> Connect(const std::string& id, ResumeOptions options = {}) {
    return Wait(manager_->Connect("admin", id, options));
  }
  Info Get(const std::string& id) { return manager_->Get("admin", id).value_or(Info{}); }
  static CreateOptions With(Lifecycle lifecycle, std::chrono::seconds timeout = 300s) {
    CreateOptions options = Options();
    options.lifecycle = lifecycle;
    options.timeout = timeout;
    return options;
  }
};

TEST_F(PauseTest, APausedSandboxHasNoTrafficAndCanBeResumed) {
  StartServer();
  Info made = Make();
  int gone = 0;
  manager_->SubscribeGone(made.id, [&] { ++gone; });
  ASSERT_TRUE(Pause(made.id));
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(manager_->FindRoute(made.id));
  EXPECT_EQ(manager_->running(), 0u);
  EXPECT_EQ(manager_->paused(), 1u);
  Info paused = Get(made.id);
  EXPECT_EQ(paused.state, State::kPaused);
  EXPECT_LT(std::chrono::abs(paused.end_at - Now()), 100s);  // when it was paused, not in 300 s
  EXPECT_EQ(paused.saved.tier, "memory");
  EXPECT_EQ(paused.saved.memory_bytes, 1 << 20);
  EXPECT_EQ(paused.saved.disk_bytes, 1 << 10);
  EXPECT_EQ(RowOf(made.id).state, "paused");
  EXPECT_EQ(EventOf(made.id, "paused").fields.at("reason"), "request");
  EXPECT_EQ(EventOf(made.id, "paused").fields.at("tier"), "memory");

  auto connected = Connect(made.id, {.timeout = 100s});
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_TRUE(connected->resumed);
  EXPECT_EQ(connected->info.state, State::kRunning);
  EXPECT_EQ(connected->info.access_token, made.access_token);
  EXPECT_GT(connected->info.started_at, made.started_at);
  EXPECT_TRUE(Lasts(connected->info, 100s));
  EXPECT_EQ(connected->info.saved.tier, "");
  EXPECT_TRUE(manager_->FindRoute(made.id));
  EXPECT_EQ(RowOf(made.id).state, "running");
  EXPECT_EQ(EventTypes(made.id), (Types{"created", "paused", "resumed"}));
  // envd heard whose it is, with the token it had.
  ASSERT_EQ(envd_.inits.size(), 1u);
  EXPECT_EQ(envd_.inits[0].settings.sandbox_id, made.id);
  EXPECT_EQ(envd_.inits[0].token, made.inside_token);
  EXPECT_EQ(envd_.inits[0].settings.env.at("A"), "template");
  EXPECT_EQ(envd_.inits[0].settings.workdir, "/srv/app");
  EXPECT_FALSE(envd_.inits[0].settings.reset_identity);
  // A running one is only given more time.
  connected = Connect(made.id, {.timeout = 200s});
  EXPECT_FALSE(connected->resumed);
  EXPECT_GT(connected->info.end_at, Now() + 150s);
  EXPECT_EQ(engine_.resumes, 1);
}

TEST_F(PauseTest, ManyRoundsChangeNothing) {
  StartServer();
  Info made = Make();
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(Pause(made.id, round % 3 != 2));
    ASSERT_TRUE(Connect(made.id)->resumed);
  }
  EXPECT_EQ(Get(made.id).metadata, made.metadata);
  EXPECT_EQ(manager_->running(), 1u);
  EXPECT_EQ(manager_->paused(), 0u);
}

TEST_F(PauseTest, WithoutMemoryItBootsAnew) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id, false));
  EXPECT_EQ(Get(id).saved.tier, "files");
  ASSERT_TRUE(Connect(id)->resumed);
  EXPECT_EQ(EventOf(id, "resumed").fields.at("memory"), "false");
  ASSERT_TRUE(Pause(id));
  ASSERT_TRUE(Connect(id, {.memory = false})->resumed);
  EXPECT_EQ(EventOf(id, "resumed").fields.at("memory"), "false");
  EXPECT_TRUE(envd_.inits.empty());  // envd has just booted with its settings
  EXPECT_NE(engine_.last_spec.boot.find(id), std::string::npos);
}

TEST_F(PauseTest, WhatIsFrozenSaysWhy) {
  StartServer();
  engine_.memory_tier = engine::Tier::kFrozen;
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  EXPECT_EQ(Get(id).saved.tier, "frozen");
  EXPECT_EQ(Get(id).saved.why_frozen, "a test wants it");
  auto event = EventOf(id, "paused");
  EXPECT_EQ(event.fields.at("tier"), "frozen");
  EXPECT_EQ(event.fields.at("why"), "a test wants it");
  EXPECT_EQ(event.level, "warn");
  // Its processes still live, and may end.
  engine_.on_exit(id, engine::ExitReason::kOutOfMemory);
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  EXPECT_EQ(RowOf(id).reason, "out_of_memory");
}

TEST_F(PauseTest, WrongStatesAreRefused) {
  StartServer();
  std::string id = Make().id;
  EXPECT_EQ(Pause("inone").error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Pause("other", id, true)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Resume("admin", id, {})).error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Pause(id));
  EXPECT_EQ(Pause(id).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(manager_->SetTimeout("admin", id, 5s, false)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->SetNetwork("admin", id, true, "{}")).error().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(Wait(manager_->Fork("admin", id, 15s, 1)).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(manager_->MakeSnapshot("admin", id)).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(manager_->Connect("other", id, {})).error().code(), Code::kNotFound);
  EXPECT_EQ(Connect(id, {.timeout = 1000000s}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Wait(manager_->Metrics("admin", id, {}, {}))->empty());
  EXPECT_TRUE(Wait(manager_->Resume("admin", id, {})));
}

TEST_F(PauseTest, ListsKnowTheState) {
  StartServer();
  std::string running = Make().id, paused = Make().id;
  ASSERT_TRUE(Pause(paused));
  auto ids = [&](bool want_running, bool want_paused) {
    std::vector<std::string> found;
    for (const Info& info :
         manager_->List({.key_id = "admin", .running = want_running, .paused = want_paused}))
      found.push_back(info.id);
    return found;
  };
  EXPECT_EQ(ids(true, true), (Types{paused, running}));
  EXPECT_EQ(ids(true, false), Types{running});
  EXPECT_EQ(ids(false, true), Types{paused});
}

TEST_F(PauseTest, AKilledOneLeavesNothing) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  ASSERT_TRUE(Wait(manager_->Kill("admin", id)));
  EXPECT_TRUE(engine_.saved.empty());
  EXPECT_EQ(RowOf(id).state, "killed");
  EXPECT_EQ(Wait(manager_->Kill("admin", id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Connect(id).error().code(), Code::kNotFound);
}

TEST_F(PauseTest, AFailedPauseLeavesItRunning) {
  StartServer();
  Info made = Make();
  auto listener = Wait(manager_->Listen("admin", made.id, 49'995));
  ASSERT_TRUE(listener) << listener.error().message();
  engine_.pause_fails = Error(Code::kUnavailable, "secret path /host");
  Status paused = Pause(made.id);
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code(), Code::kUnavailable);
  EXPECT_EQ(paused.error().message().find("/host"), std::string::npos);
  ASSERT_TRUE(manager_->FindRoute(made.id));
  EXPECT_TRUE(manager_->FindRoute(made.id)->private_ports.contains(49'995));
  EXPECT_EQ(Get(made.id).state, State::kRunning);
  EXPECT_EQ(Get(made.id).end_at, made.end_at);
  EXPECT_EQ(RowOf(made.id).state, "running");
  EXPECT_EQ(EventOf(made.id, "pause_failed").fields.at("reason"), "request");
  engine_.pause_fails.reset();
  EXPECT_TRUE(Pause(made.id));
}

TEST_F(PauseTest, OnlyAHealthyOneIfAskedSo) {
  StartServer();
  std::string id = Make().id;
  envd_.health_fails = Error(Code::kUnavailable, "no answer");
  EXPECT_EQ(Wait(manager_->Pause("admin", id, true, true)).error().code(), Code::kUnavailable);
  EXPECT_TRUE(manager_->FindRoute(id));
  EXPECT_EQ(engine_.pauses, 0);
  envd_.health_fails.reset();
  EXPECT_TRUE(Wait(manager_->Pause("admin", id, true, true)));
}

TEST_F(PauseTest, AnEndDuringAFailedPauseIsAnEnd) {
  StartServer();
  std::string id = Make().id;
  engine_.held = "pause";
  engine_.pause_fails = Error(Code::kInternal, "it died");
  auto paused = Begin(manager_->Pause("admin", id, true));
  ASSERT_TRUE(Until([&] { return engine_.pauses == 1; }));
  engine_.Exit(id, engine::ExitReason::kOutOfMemory);
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return paused->has_value(); }));
  EXPECT_FALSE(**paused);
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  EXPECT_EQ(RowOf(id).reason, "out_of_memory");
  EXPECT_FALSE(manager_->Get("admin", id));
}

TEST_F(PauseTest, AFailedResumeLeavesItPaused) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  engine_.resume_fails = Error(Code::kDataLoss, "its checksum is wrong");
  auto resumed = Connect(id);
  EXPECT_EQ(resumed.error().code(), Code::kDataLoss);
  EXPECT_NE(resumed.error().message().find("checksum"), std::string::npos);
  EXPECT_EQ(Get(id).state, State::kPaused);
  EXPECT_EQ(EventTypes(id).back(), "resume_failed");
  engine_.resume_fails.reset();
  EXPECT_TRUE(Connect(id)->resumed);
}

TEST_F(PauseTest, WithoutAnAnswerOfEnvdItIsPutAwayAgain) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  envd_.init_fails = Error(Code::kUnavailable, "no answer");
  EXPECT_EQ(Connect(id).error().code(), Code::kUnavailable);
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_EQ(Get(id).state, State::kPaused);
  EXPECT_TRUE(engine_.saved.contains(id));
  EXPECT_EQ(EventTypes(id).back(), "resume_failed");
  envd_.init_fails.reset();
  EXPECT_TRUE(Connect(id)->resumed);
}

TEST_F(PauseTest, WhatCannotBePutAwayAgainWaitsForTheNextResume) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  envd_.init_fails = engine_.pause_fails = Error(Code::kUnavailable, "no");
  EXPECT_FALSE(Connect(id));
  EXPECT_TRUE(Until([&] { return EventTypes(id).back() == "resume_failed"; }));
  EXPECT_EQ(Get(id).state, State::kPaused);
  EXPECT_TRUE(engine_.instances.contains(id));
  envd_.init_fails.reset();
  EXPECT_TRUE(Connect(id)->resumed);
  EXPECT_EQ(Get(id).state, State::kRunning);
}

TEST_F(PauseTest, WhatIsLostIsTold) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  engine_.saved.clear();
  EXPECT_FALSE(Connect(id));
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  EXPECT_EQ(RowOf(id).reason, "saved_state_lost");
}

TEST_F(PauseTest, AKillDuringAPauseWins) {
  StartServer();
  std::string id = Make().id;
  engine_.held = "pause";
  auto paused = Begin(manager_->Pause("admin", id, true));
  ASSERT_TRUE(Until([&] { return engine_.pauses == 1; }));
  EXPECT_EQ(Get(id).state, State::kPaused);  // as clients shall see it
  auto killed = Begin(manager_->Kill("admin", id));
  EXPECT_FALSE(manager_->Get("admin", id));
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return killed->has_value() && paused->has_value(); }));
  EXPECT_TRUE(**killed);
  EXPECT_EQ((*paused)->error().code(), Code::kNotFound);
  EXPECT_TRUE(engine_.saved.empty());
  EXPECT_TRUE(engine_.instances.empty());
  EXPECT_EQ(RowOf(id).state, "killed");
  EXPECT_EQ(manager_->paused() + manager_->running(), 0u);
}

TEST_F(PauseTest, AKillDuringAResumeWins) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  engine_.held = "resume";
  auto resumed = Begin(manager_->Connect("admin", id, {}));
  ASSERT_TRUE(Until([&] { return engine_.resumes == 1; }));
  auto killed = Begin(manager_->Kill("admin", id));
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return killed->has_value() && resumed->has_value(); }));
  EXPECT_TRUE(**killed);
  EXPECT_EQ((*resumed)->error().code(), Code::kNotFound);
  EXPECT_TRUE(engine_.saved.empty());
  EXPECT_TRUE(engine_.instances.empty());
  EXPECT_EQ(RowOf(id).state, "killed");
}

TEST_F(PauseTest, AConnectWaitsForThePauseAndManyResumeOnce) {
  StartServer();
  std::string id = Make().id;
  engine_.resume_takes = 20ms;
  engine_.held = "pause";
  auto paused = Begin(manager_->Pause("admin", id, true));
  ASSERT_TRUE(Until([&] { return engine_.pauses == 1; }));
  EXPECT_EQ(Wait(manager_->SetTimeout("admin", id, 5s, false)).error().code(), Code::kAborted);
  std::vector<std::shared_ptr<std::optional<Result<Connected>>>> connects;
  for (int i = 0; i < 10; ++i) connects.push_back(Begin(manager_->Connect("admin", id, {})));
  engine_.held = "";
  ASSERT_TRUE(Until([&] {
    return std::all_of(connects.begin(), connects.end(),
                       [](auto& one) { return one->has_value(); });
  }));
  int resumed = 0;
  for (auto& one : connects) {
    ASSERT_TRUE(**one) << (*one)->error().message();
    resumed += (**one)->resumed;
  }
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(engine_.resumes, 1);
  EXPECT_TRUE(**paused);
}

TEST_F(PauseTest, WaitingForATurnHasAnEnd) {
  config_.save_timeout_ms = 20;
  StartServer();
  std::string id = Make().id;
  engine_.held = "pause";
  auto paused = Begin(manager_->Pause("admin", id, true));
  ASSERT_TRUE(Until([&] { return engine_.pauses == 1; }));
  auto connected = Connect(id);
  engine_.held = "";
  EXPECT_EQ(connected.error().code(), Code::kAborted);
  EXPECT_NE(connected.error().message().find("is being paused"), std::string::npos);
  EXPECT_TRUE(Until([&] { return paused->has_value(); }));
}

TEST_F(PauseTest, AtTheEndOfItsTimeItIsPaused) {
  StartServer();
  std::string with = Make(With({.auto_pause = true}, 1s)).id;
  std::string without = Make(With({.auto_pause = true, .auto_pause_memory = false}, 1s)).id;
  EXPECT_TRUE(Until([&] { return RowOf(with).state == "paused"; }));
  EXPECT_TRUE(Until([&] { return RowOf(without).state == "paused"; }));
  EXPECT_EQ(EventOf(with, "paused").fields.at("reason"), "timeout");
  EXPECT_EQ(Get(with).saved.tier, "memory");
  EXPECT_EQ(Get(without).saved.tier, "files");
  EXPECT_TRUE(Connect(with)->resumed);
}

TEST_F(PauseTest, AFailedPauseAtTheEndGivesMoreTime) {
  StartServer();
  engine_.pause_fails = Error(Code::kInternal, "no");
  Info made = Make(With({.auto_pause = true}, 1s));
  std::string id = made.id;
  EXPECT_TRUE(Until([&] { return EventTypes(id).size() == 3; }));
  EXPECT_EQ(EventTypes(id), (Types{"created", "pause_failed", "timeout_set"}));
  EXPECT_EQ(EventOf(id, "timeout_set").fields.at("reason"), "pause_failed");
  EXPECT_EQ(EventOf(id, "timeout_set").level, "error");
  EXPECT_TRUE(manager_->FindRoute(id));
  EXPECT_GT(Get(id).end_at, made.end_at + 5s);
  EXPECT_EQ(RowOf(id).end_at, Get(id).end_at);
  // The client may still ask for the end it wants.
  engine_.pause_fails.reset();
  ASSERT_TRUE(Wait(manager_->SetTimeout("admin", id, 0s, false)));
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "paused"; }));
}

TEST_F(PauseTest, WhatStandsStillForTheDiskIsPausedWhenThereIsRoom) {
  StartServer();
  std::string id = Make(With({.auto_pause = true}, 300s)).id;
  engine_.on_held(id, true, 400);
  EXPECT_TRUE(manager_->FindRoute(id)->held);
  EXPECT_EQ(Pause(id).error().code(), Code::kUnavailable);
  ASSERT_TRUE(Wait(manager_->SetTimeout("admin", id, 0s, false)));
  EXPECT_TRUE(Until([&] { return Get(id).end_at <= Now(); }));
  EXPECT_EQ(engine_.pauses, 0);
  EXPECT_TRUE(manager_->FindRoute(id)->held) << "it was forgotten that it stands still";
  EXPECT_EQ(EventTypes(id), (Types{"created", "held", "timeout_set"}));
  engine_.on_held(id, false, 2000);
  EXPECT_FALSE(manager_->FindRoute(id)->held);
  EXPECT_TRUE(Pause(id));
}

TEST_F(PauseTest, WhatStandsStillBeforeItIsShownIsKnownToStandStill) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  engine_.held = "resume";
  auto resumed = Begin(manager_->Connect("admin", id, {.timeout = 60s}));
  ASSERT_TRUE(Until([&] { return engine_.resumes == 1; }));
  engine_.on_held(id, true, 400);
  engine_.held = "";
  ASSERT_TRUE(Until([&] { return resumed->has_value(); }));
  EXPECT_TRUE(manager_->FindRoute(id)->held);
}

TEST_F(PauseTest, TheLastAttemptSavesTheFiles) {
  StartServer();
  engine_.pause_fails = Error(Code::kInternal, "no");
  engine_.pause_of_files_fails = false;
  Info last = Make(With({.auto_pause = true}, 1s));
  const std::string id = last.id;
  for (int attempt = 1; attempt < 6; ++attempt) {
    ASSERT_TRUE(Until([&] { return Get(id).end_at > last.end_at + 5s; })) << attempt;
    auto ended = Wait(manager_->SetTimeout("admin", id, 0s, false));
    ASSERT_TRUE(ended) << ended.error().message();
    last = *ended;
  }
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "paused"; }));
  EXPECT_EQ(Get(id).saved.tier, "files");
}

TEST_F(PauseTest, TheOperatorsLimitsHold) {
  config_.max_paused_per_key = 1;
  config_.max_sandboxes = 2;
  config_.max_sandboxes_per_key = 1;
  StartServer();
  std::string first = Make().id;
  ASSERT_TRUE(Pause(first));
  std::string second = Make().id;  // a paused one does not count
  EXPECT_EQ(Pause(second).error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(manager_->FindRoute(second));
  EXPECT_EQ(Connect(first).error().code(), Code::kResourceExhausted);  // the key's
  EXPECT_EQ(Get(first).state, State::kPaused);
  Make(Options("other"));
  ASSERT_TRUE(Wait(manager_->Kill("admin", second)));
  Make(Options("third"));
  EXPECT_EQ(Connect(first).error().code(), Code::kUnavailable);  // the server's
}

TEST_F(PauseTest, PausedOnesAreKeptForSoLong) {
  config_.paused_retention_days = 1;
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Pause(id));
  StopServer();
  auto row = RowOf(id);
  row.end_at = Now() - 25h;
  ASSERT_TRUE(Wait(store_->UpdateSandbox(row, {.sandbox_id = id, .at = Now(), .type = "test"})));
  StartServer();
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  EXPECT_EQ(RowOf(id).reason, "paused_retention");
  EXPECT_TRUE(engine_.saved.empty());
}

TEST_F(PauseTest, NobodyUsesItSoItIsPaused) {
  config_.idle_pause_s = 3;  // the other one is used more often, also where everything is slow
  StartServer();
  std::string idle = Make().id, used = Make().id, open = Make().id;
  auto subscription = manager_->SubscribeGone(open, [] {});
  EXPECT_TRUE(Until([&] {
    manager_->FindRoute(used);
    return RowOf(idle).state == "paused";
  }));
  EXPECT_EQ(EventOf(idle, "paused").fields.at("reason"), "idle");
  EXPECT_EQ(Get(used).state, State::kRunning);
  EXPECT_EQ(Get(open).state, State::kRunning);
  manager_->UnsubscribeGone(open, subscription);
}

TEST_F(PauseTest, AShutdownPausesIfItShall) {
  config_.on_shutdown = "pause";
  StartServer();
  std::string id = Make().id, failing = Make().id;
  StopServer();
  EXPECT_EQ(RowOf(id).state, "paused");
  EXPECT_EQ(EventOf(id, "paused").fields.at("reason"), "shutdown");
  EXPECT_TRUE(engine_.instances.empty());
}

TEST_F(PauseTest, ADrainedServerStartsNothing) {
  StartServer();
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Make().id);
  engine_.pause_takes = 2ms;
  Drained drained = Wait(manager_->Drain());
  EXPECT_EQ(drained.paused, 20u);
  EXPECT_TRUE(drained.failed.empty());
  EXPECT_EQ(EventOf(ids[0], "paused").fields.at("reason"), "drain");
  EXPECT_EQ(Wait(manager_->Create(Options())).error().code(), Code::kUnavailable);
  EXPECT_EQ(Connect(ids[0]).error().code(), Code::kUnavailable);
  manager_->EndDrain();
  EXPECT_TRUE(Connect(ids[0])->resumed);
  engine_.pause_fails = Error(Code::kInternal, "no");
  drained = Wait(manager_->Drain());
  ASSERT_EQ(drained.failed.size(), 1u);
  EXPECT_EQ(drained.failed[0].first, ids[0]);
  EXPECT_TRUE(manager_->FindRoute(ids[0]));
}

TEST_F(PauseTest, TrafficWakesWhoWantsIt) {
  config_.auto_resume_timeout_s = 400;
  StartServer();
  std::string never = Make().id;
  std::string sleeper = Make(With({.auto_resume = true}, 100s)).id;
  std::string longer = Make(With({.auto_resume = true}, 900s)).id;
  std::string empty = Make(With({.auto_resume = true})).id;
  ASSERT_TRUE(Pause(never));
  ASSERT_TRUE(Pause(sleeper));
  ASSERT_TRUE(Pause(longer));
  ASSERT_TRUE(Pause(empty, false));
  EXPECT_FALSE(manager_->FindSleeper(never));
  EXPECT_FALSE(manager_->FindSleeper(empty));
  EXPECT_EQ(Wait(manager_->Wake(never)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(manager_->Wake(empty)).error().code(), Code::kNotFound);
  ASSERT_TRUE(manager_->FindSleeper(sleeper));
  EXPECT_EQ(manager_->FindSleeper(sleeper)->access_token, AccessToken("secret", sleeper));
  int routes = 0;
  manager_->ForEachRoute([&](const Route& route) {
    routes += route.id == sleeper || route.id == longer;
    EXPECT_NE(route.id, never);
    return false;
  });
  EXPECT_EQ(routes, 2);

  engine_.resume_takes = 20ms;
  std::vector<std::shared_ptr<std::optional<Status>>> wakes;
  for (int i = 0; i < 20; ++i) wakes.push_back(Begin(manager_->Wake(sleeper)));
  ASSERT_TRUE(Until([&] {
    return std::all_of(wakes.begin(), wakes.end(), [](auto& one) { return one->has_value(); });
  }));
  for (auto& one : wakes) EXPECT_TRUE(**one);
  EXPECT_EQ(engine_.resumes, 1);
  EXPECT_EQ(EventOf(sleeper, "resumed").fields.at("reason"), "traffic");
  Info info = Get(sleeper);
  EXPECT_TRUE(Lasts(info, 400s));
  ASSERT_TRUE(Wait(manager_->Wake(longer)));
  info = Get(longer);
  EXPECT_TRUE(Lasts(info, 900s));
}

TEST_F(PauseTest, OnlySoManyWaitForOne) {
  StartServer();
  std::string id = Make(With({.auto_resume = true})).id;
  ASSERT_TRUE(Pause(id));
  engine_.held = "resume";
  std::vector<std::shared_ptr<std::optional<Status>>> wakes;
  for (int i = 0; i < 300; ++i) {
    auto result = std::make_shared<std::optional<Status>>();
    asio::co_spawn(io_, manager_->Wake(id), [result](std::exception_ptr, Status status) {
      result->emplace(std::move(status));
    });
    wakes.push_back(result);
  }
  ASSERT_TRUE(Until([&] {
    return std::count_if(wakes.begin(), wakes.end(), [](auto& one) { return one->has_value(); }) ==
           300 - 1 - Turns::kMaxWaiting;
  }));
  engine_.held = "";
  ASSERT_TRUE(Until([&] {
    return std::all_of(wakes.begin(), wakes.end(), [](auto& one) { return one->has_value(); });
  }));
  auto refused = std::count_if(wakes.begin(), wakes.end(), [](auto& one) {
    return !**one && (*one)->error().code() == Code::kResourceExhausted;
  });
  EXPECT_EQ(refused, 300 - 1 - Turns::kMaxWaiting);
  EXPECT_EQ(engine_.resumes, 1);
}

}  // namespace
}  // namespace caisson::sandbox
