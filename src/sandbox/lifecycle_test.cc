// Ends of sandboxes, and what a new server process makes of the old one's.
#include "sandbox/manager_fixture.h"
#include "sandbox/sampler.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using Types = std::vector<std::string>;

class LifecycleTest : public ManagerFixture {};

TEST_F(LifecycleTest, AKillEndsTrafficAtOnceAndEverythingSoon) {
  engine_.held = "destroy";
  StartServer();
  std::string id = Make().id;
  int gone = 0;
  manager_->SubscribeGone(id, [&] {
    ++gone;
    EXPECT_FALSE(manager_->FindRoute(id));
  });
  auto cancelled = manager_->SubscribeGone(id, [&] { gone += 100; });
  manager_->UnsubscribeGone(id, cancelled);

  bool killed = false;
  asio::co_spawn(io_, manager_->Kill("admin", id), [&](std::exception_ptr, Status status) {
    EXPECT_TRUE(status);
    killed = true;
  });
  io_.restart();
  io_.poll();
  EXPECT_FALSE(killed);  // the engine is still at it
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_FALSE(manager_->Get("admin", id));
  EXPECT_EQ(Wait(manager_->Kill("admin", id)).error().code(), Code::kNotFound);
  engine_.held = "";
  EXPECT_TRUE(Until([&] { return killed; }));
  EXPECT_TRUE(engine_.destroyed.contains(id));
  auto row = RowOf(id);
  EXPECT_EQ(row.state, "killed");
  EXPECT_EQ(row.reason, "request");
  EXPECT_TRUE(row.ended_at);
  EXPECT_EQ(EventTypes(id), (Types{"created", "killed"}));
  EXPECT_EQ(gone, 1);
  // The timeline outlives the sandbox.
  EXPECT_EQ(Wait(manager_->Events("admin", id, {})).value().size(), 2u);
}

TEST_F(LifecycleTest, SubscribingToWhatIsGoneCallsAtOnce) {
  StartServer();
  int gone = 0;
  EXPECT_EQ(manager_->SubscribeGone("inone", [&] { ++gone; }), 0u);
  EXPECT_EQ(gone, 1);
  manager_->UnsubscribeGone("inone", 0);
}

TEST_F(LifecycleTest, ASubscriberMayUnsubscribeAnotherWhileBothAreToBeTold) {
  StartServer();
  std::string id = Make().id;
  int second_called = 0;
  Manager::GoneId second = 0;
  manager_->SubscribeGone(id, [&] { manager_->UnsubscribeGone(id, second); });
  second = manager_->SubscribeGone(id, [&] { ++second_called; });
  ASSERT_TRUE(Wait(manager_->Kill("admin", id)));
  EXPECT_EQ(second_called, 0);
}

TEST_F(LifecycleTest, AFailedDestroyIsToldAndTriedAgain) {
  StartServer();
  std::string id = Make().id;
  engine_.destroy_failures = 1;
  auto killed = Wait(manager_->Kill("admin", id));
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code(), Code::kInternal);
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_EQ(RowOf(id).state, "killed");
  EXPECT_TRUE(Until([&] { return engine_.destroyed.contains(id); }));
}

TEST_F(LifecycleTest, ATimeoutKills) {
  StartServer();
  CreateOptions options = Options();
  options.timeout = 1s;
  std::string id = Make(options).id;
  std::string other = Make().id;
  EXPECT_TRUE(Until([&] { return engine_.destroyed.contains(id); }));
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_TRUE(manager_->FindRoute(other));
  EXPECT_TRUE(Until([&] { return RowOf(id).reason == "timeout"; }));
}

TEST_F(LifecycleTest, ATimeoutOfZeroEndsNow) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->SetTimeout("admin", id, 0s, false)));
  EXPECT_TRUE(Until([&] { return !manager_->FindRoute(id); }));
}

TEST_F(LifecycleTest, TimeoutsAreSetExtendedAndClamped) {
  config_.max_timeout_s = 1000;
  StartServer();
  Info info = Make();
  auto set = [&](std::chrono::seconds timeout, bool only_extend) {
    return Wait(manager_->SetTimeout("admin", info.id, timeout, only_extend));
  };
  // Whether the end is then so far from a moment during the call.
  auto ends_after = [&](std::chrono::seconds left, std::chrono::seconds timeout, bool only_extend) {
    Time before = std::chrono::floor<std::chrono::microseconds>(Now());
    Time end = set(timeout, only_extend)->end_at;
    return before + left <= end && end <= Now() + left;
  };
  EXPECT_TRUE(ends_after(500s, 500s, false));
  EXPECT_TRUE(ends_after(50s, 50s, false));  // may shorten
  Time end = manager_->Get("admin", info.id)->end_at;
  EXPECT_EQ(set(10s, true)->end_at, end);  // never shortens
  EXPECT_EQ(RowOf(info.id).end_at, end);
  EXPECT_TRUE(ends_after(200s, 200s, true));
  EXPECT_EQ(RowOf(info.id).end_at, manager_->Get("admin", info.id)->end_at);
  EXPECT_EQ(set(5000s, false)->end_at, info.started_at + 1000s);  // the longest life
  EXPECT_EQ(set(5000s, true).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(ends_after(0s, -5s, false));
}

TEST_F(LifecycleTest, NetworkSettingsAreReplacedWithWhatIsEnforced) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->SetNetwork("admin", id, true, R"({"denyOut":["10.0.0.0/8"]})")));
  EXPECT_EQ(manager_->Get("admin", id)->network.as_requested_json, R"({"denyOut":["10.0.0.0/8"]})");
  EXPECT_EQ(RowOf(id).network_json, R"({"denyOut":["10.0.0.0/8"]})");
  EXPECT_EQ(engine_.instances[id].egress.deny, std::vector<std::string>{"10.0.0.0/8"});
  ASSERT_TRUE(Wait(manager_->SetNetwork("admin", id, false, R"({"allowOut":["a.example"]})")));
  EXPECT_FALSE(manager_->Get("admin", id)->allow_internet);
  EXPECT_FALSE(RowOf(id).allow_internet);
  engine::Egress closed{.allow = {"a.example"}, .deny = {"0.0.0.0/0", "::/0"}};
  EXPECT_EQ(engine_.instances[id].egress, closed);
  // Of two at once the one answered last holds.
  engine_.set_egress_takes = 20ms;
  auto open = Begin(manager_->SetNetwork("admin", id, true, "{}"));
  auto shut = Begin(manager_->SetNetwork("admin", id, false, R"({"allowOut":["a.example"]})"));
  ASSERT_TRUE(Until([&] { return open->has_value() && shut->has_value(); }));
  EXPECT_EQ(engine_.instances[id].egress, closed);
  EXPECT_FALSE(RowOf(id).allow_internet);
  // What the engine does not enforce is not reported as set.
  engine_.set_egress_fails = Error(Code::kInternal, "a path of the host");
  Status failed = Wait(manager_->SetNetwork("admin", id, true, "{}"));
  EXPECT_EQ(failed.error().code(), Code::kInternal);
  EXPECT_EQ(failed.error().message().find("path"), std::string::npos);
  EXPECT_FALSE(manager_->Get("admin", id)->allow_internet);
  EXPECT_EQ(
      Wait(manager_->SetNetwork("admin", id, true, R"({"allowOut":["a.example"]})")).error().code(),
      Code::kInvalidArgument);
  EXPECT_EQ(Wait(manager_->SetNetwork("admin", "inone", true, "")).error().code(), Code::kNotFound);
}

TEST_F(LifecycleTest, BlockedAttemptsBecomeEvents) {
  StartServer();
  std::string id = Make().id;
  engine_.on_blocked({.id = id,
                      .destination = "169.254.169.254",
                      .port = 80,
                      .protocol = "tcp",
                      .pid = 7,
                      .command = "curl"});
  engine_.on_blocked({.id = id, .destination = "evil.example", .protocol = "dns"});
  engine_.on_blocked({.id = id, .more = 12});
  engine_.on_blocked({.id = "inone", .destination = "1.1.1.1", .protocol = "tcp"});
  auto blocked = [&] {
    std::vector<store::SandboxEvent> found;
    auto all = Wait(manager_->Events("admin", id, {}));
    for (const auto& event : *all)
      if (event.type == "egress_blocked") found.push_back(event);
    return found;
  };
  EXPECT_TRUE(Until([&] { return blocked().size() >= 3; }));
  auto events = blocked();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].message,
            "An attempt to reach 169.254.169.254:80 (tcp) was blocked by curl (process 7)");
  EXPECT_EQ(events[0].fields.at("port"), "80");
  EXPECT_EQ(events[0].fields.at("command"), "curl");
  EXPECT_EQ(events[1].fields.at("destination"), "evil.example");
  EXPECT_FALSE(events[1].fields.contains("port"));
  EXPECT_EQ(events[2].fields.at("count"), "12");
}

TEST_F(LifecycleTest, AnExitEndsTheSandboxWithItsReason) {
  StartServer();
  std::string id = Make().id;
  int gone = 0;
  manager_->SubscribeGone(id, [&] { ++gone; });
  engine_.Exit(id, engine::ExitReason::kOutOfMemory);
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(manager_->FindRoute(id));
  EXPECT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  EXPECT_EQ(RowOf(id).reason, engine::ExitReasonName(engine::ExitReason::kOutOfMemory));
  EXPECT_TRUE(engine_.destroyed.contains(id));  // traces are removed too
  auto events = Wait(manager_->Events("admin", id, {.levels = {"error"}})).value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].message.find("memory"), std::string::npos);
  engine_.Exit("iother", engine::ExitReason::kUnknown);  // ignored
}

TEST_F(LifecycleTest, AnExitDuringTheCreationFailsIt) {
  StartServer();
  engine_.exit_after_create = engine::ExitReason::kEnvdKilled;
  auto made = Wait(manager_->Create(Options()));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
  EXPECT_EQ(manager_->running(), 0u);
  EXPECT_TRUE(Until([&] { return engine_.destroyed.size() == 1; }));
  EXPECT_TRUE(Until([&] { return Wait(store_->ListLiveSandboxes()).value().empty(); }));
}

// ---- adoption
// --------------------------------------------------------------------------------------

TEST_F(LifecycleTest, ANewServerAdoptsWhatLives) {
  StartServer();
  CreateOptions options = Options("a");
  options.metadata = {{"k", "v"}};
  options.network.allow_public_traffic = false;
  Info before = Make(options);
  StopServer();
  StartServer();
  auto after = manager_->Get("a", before.id);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->metadata, before.metadata);
  EXPECT_EQ(after->started_at, before.started_at);
  EXPECT_EQ(after->end_at, before.end_at);
  EXPECT_EQ(after->access_token, before.access_token);  // clients keep working
  EXPECT_EQ(after->traffic_token, before.traffic_token);
  EXPECT_TRUE(manager_->FindRoute(before.id));
  EXPECT_TRUE(Wait(manager_->Kill("a", before.id)));
  EXPECT_TRUE(engine_.destroyed.contains(before.id));
}

TEST_F(LifecycleTest, ANewServerEndsWhatIsGoneExpiredOrUnknown) {
  StartServer();
  CreateOptions brief = Options();
  brief.timeout = 1s;
  std::string lost = Make().id, expired = Make(brief).id, kept = Make().id;
  testing::Await(io_, manager_->Stop());
  manager_.reset();
  engine_.instances.erase(lost);
  engine_.instances["iorphan"] = {};
  auto long_ago = RowOf(kept);
  long_ago.id = "iold";
  long_ago.started_at = Time(24h);
  ASSERT_TRUE(Wait(store_->InsertSandbox(
      long_ago, {.sandbox_id = "iold", .at = Now(), .type = "created", .message = "x"})));
  Sleep(1100ms);

  StartServer();
  EXPECT_EQ(manager_->running(), 1u);
  EXPECT_TRUE(manager_->FindRoute(kept));
  EXPECT_EQ(RowOf(lost).reason, "server_down");
  EXPECT_EQ(RowOf("iold").reason, "host_restarted");
  EXPECT_EQ(RowOf(expired).reason, "timeout");
  EXPECT_EQ(engine_.destroyed, (std::set<std::string>{lost, expired, "iold", "iorphan"}));
  EXPECT_EQ(Wait(store_->ListLiveSandboxes()).value().size(), 1u);
}

TEST_F(LifecycleTest, AdoptedSandboxesStillTimeOut) {
  StartServer();
  CreateOptions brief = Options();
  brief.timeout = 5s;  // the next server has to be there before that
  std::string id = Make(brief).id;
  StopServer();
  StartServer();
  ASSERT_TRUE(manager_->FindRoute(id));
  EXPECT_TRUE(Until([&] { return engine_.destroyed.contains(id); }));
}

// ---- arithmetic
// --------------------------------------------------------------------------------------

TEST(CpuUsedPct, IsAShareOfAllCpus) {
  Time t0 = Now();
  auto ns = [](std::chrono::nanoseconds d) { return d.count(); };
  EXPECT_DOUBLE_EQ(CpuUsedPct(0, t0, ns(1s), t0 + 1s, 1), 100);
  EXPECT_DOUBLE_EQ(CpuUsedPct(0, t0, ns(1s), t0 + 1s, 2), 50);
  EXPECT_DOUBLE_EQ(CpuUsedPct(ns(1s), t0, ns(1s), t0 + 1s, 2), 0);
  EXPECT_DOUBLE_EQ(CpuUsedPct(0, t0, ns(9s), t0 + 1s, 2), 100);  // sampling is not exact
  EXPECT_DOUBLE_EQ(CpuUsedPct(0, t0, ns(1s), t0, 2), 0);
  EXPECT_DOUBLE_EQ(CpuUsedPct(ns(2s), t0, ns(1s), t0 + 1s, 2), 0);
}

}  // namespace
}  // namespace caisson::sandbox
