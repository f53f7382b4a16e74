// What one sandbox may use: asked for at creation, changed later, kept over a restart.
#include "sandbox/limits.h"

#include <gmock/gmock.h>

#include "sandbox/manager_fixture.h"

namespace caisson::sandbox {
namespace {

class LimitsTest : public ManagerFixture {
 protected:
  Result<Info> Create(LimitOptions limits) {
    auto options = Options();
    options.limits = limits;
    return Wait(manager_->Create(options));
  }
};

TEST_F(LimitsTest, TheRequestWinsOverTheTemplateAndTheTemplateOverTheServer) {
  WriteTemplate(dir_ / "templates", "lean", R"({"id":"lean","pids":100,"openFiles":1000})");
  templates_ = TemplateCatalog::Load(dir_ / "templates").value();
  StartServer();
  auto options = Options();
  options.template_name = "lean";
  Info made = Make(options);
  EXPECT_EQ(made.cpus, config_.sandbox_cpus);
  EXPECT_EQ(made.pids, 100);
  EXPECT_EQ(made.open_files, 1000);
  options.limits = {.cpus = 1, .memory_mb = 256, .disk_mb = 512, .pids = 64, .open_files = 500};
  made = Make(options);
  const engine::Limits& set = engine_.last_spec.limits;
  EXPECT_EQ(set.cpus, 1);
  EXPECT_EQ(set.memory_bytes, 256 << 20);
  EXPECT_EQ(set.disk_bytes, 512 << 20);
  EXPECT_EQ(set.pids, 64);
  EXPECT_EQ(set.open_files, 500);
  EXPECT_EQ(made.memory_mb, 256);
}

TEST_F(LimitsTest, OutputIsLimitedByEnvd) {
  StartServer();
  Make();
  EXPECT_EQ(engine_.last_spec.boot.find("output_kbps"), std::string::npos);
  ASSERT_TRUE(Create({.output_kbps = 64}));
  EXPECT_NE(engine_.last_spec.boot.find(R"("limits":{"output_kbps":64})"), std::string::npos);
}

TEST_F(LimitsTest, TooMuchOrTooLittleIsRefusedWithTheRange) {
  config_.max_sandbox_memory_mb = 2048;
  config_.max_sandbox_open_files = 100'000;
  config_.max_sandbox_output_kbps = 100;
  StartServer();
  for (LimitOptions wrong : std::vector<LimitOptions>{{.cpus = 0},
                                                      {.cpus = 9},
                                                      {.memory_mb = 2049},
                                                      {.memory_mb = 1},
                                                      {.disk_mb = 1},
                                                      {.disk_mb = 1 << 20},
                                                      {.pids = 2},
                                                      {.pids = 1 << 20},
                                                      {.open_files = 3},
                                                      {.open_files = 1 << 20},
                                                      {.output_kbps = 0},
                                                      {.output_kbps = 101}}) {
    auto refused = Create(wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(Create({.memory_mb = 4096}).error().message(),
            "limits.memoryMB must be from 16 to 2048");
  EXPECT_EQ(engine_.creates, 0);
}

TEST_F(LimitsTest, WithoutAMaximumTheHostIsTheUpperEnd) {
  engine_.open_files = 5000;
  config_.sandbox_output_kbps = 100;
  StartServer();
  Info made = Make();
  EXPECT_EQ(made.open_files, 5000);  // the setting says more
  EXPECT_EQ(made.output_kbps, 100);
  EXPECT_EQ(Create({.open_files = 5001}).error().message(),
            "limits.openFiles must be from 64 to 5000");
  EXPECT_EQ(Create({.open_files = 5000})->open_files, 5000);
  EXPECT_EQ(Create({.output_kbps = 1'000'000})->output_kbps, 1'000'000);
  EXPECT_EQ(Create({.output_kbps = 0})->output_kbps, 0);
}

TEST_F(LimitsTest, ATemplateLimitsOutputToo) {
  WriteTemplate(dir_ / "templates", "quiet", R"({"id":"quiet","outputKBps":7})");
  templates_ = TemplateCatalog::Load(dir_ / "templates").value();
  StartServer();
  auto options = Options();
  options.template_name = "quiet";
  EXPECT_EQ(Make(options).output_kbps, 7);
  options.limits.output_kbps = 8;
  EXPECT_EQ(Make(options).output_kbps, 8);
}

TEST_F(LimitsTest, AChangeTakesEffectAndSurvivesARestart) {
  StartServer();
  std::string id = Make().id;
  auto changed =
      Wait(manager_->SetLimits("admin", id, {.memory_mb = 700, .pids = 33, .open_files = 99}));
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(engine_.instances[id].limits.memory_bytes, 700 << 20);
  EXPECT_EQ(engine_.instances[id].limits.pids, 33);
  EXPECT_EQ(engine_.instances[id].limits.open_files, 99);
  EXPECT_TRUE(envd_.output_rates.empty());
  EXPECT_EQ(EventTypes(id), (std::vector<std::string>{"created", "limits_set"}));
  StopServer();
  StartServer();
  Info info = manager_->Get("admin", id).value();
  EXPECT_EQ(info.memory_mb, 700);
  EXPECT_EQ(info.pids, 33);
  EXPECT_EQ(info.open_files, 99);
  EXPECT_EQ(info.cpus, 3);
}

TEST_F(LimitsTest, TheRateOfOutputIsToldToEnvdAndToldAgainWhenItIsResumed) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->SetLimits("admin", id, {.output_kbps = 50})));
  EXPECT_EQ(envd_.output_rates, std::vector<int64_t>{50});
  ASSERT_TRUE(Wait(manager_->Pause("admin", id, true)));
  ASSERT_TRUE(Wait(manager_->SetLimits("admin", id, {.output_kbps = 70})));
  EXPECT_EQ(envd_.output_rates.size(), 1u);  // nobody is there to be told
  ASSERT_TRUE(Wait(manager_->Resume("admin", id, {})));
  EXPECT_EQ(envd_.inits.back().settings.output_kbps, 70);
  EXPECT_NE(engine_.last_spec.boot.find(R"("output_kbps":70)"), std::string::npos);
}

TEST_F(LimitsTest, AChangeIsMadeAsAWholeOrNotAtAll) {
  StartServer();
  std::string id = Make().id;
  const LimitOptions both{.pids = 50, .output_kbps = 50};
  engine_.set_limits_fails = Error(Code::kInternal, "a test wants it");
  ASSERT_FALSE(Wait(manager_->SetLimits("admin", id, both)));
  EXPECT_EQ(envd_.output_rates, (std::vector<int64_t>{50, 0}));
  engine_.set_limits_fails.reset();
  envd_.init_fails = Error(Code::kUnavailable, "a test wants it");
  auto refused = Wait(manager_->SetLimits("admin", id, both));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(engine_.instances[id].limits.pids, config_.sandbox_pids);
  EXPECT_EQ(manager_->Get("admin", id)->output_kbps, 0);
  EXPECT_EQ(EventTypes(id), std::vector<std::string>{"created"});
}

TEST_F(LimitsTest, ADiskGrowsWhileItsSandboxIsPaused) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->Pause("admin", id, true)));
  EXPECT_EQ(Wait(manager_->SetLimits("admin", id, {.disk_mb = 100})).error().message(),
            "limits.diskSizeMB cannot become less than the 10240 MB that the sandbox has");
  engine_.grow_fails = Error(Code::kInternal, "/a/path of the host");
  auto refused = Wait(manager_->SetLimits("admin", id, {.disk_mb = 20'000}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(refused.error().message().find("path"), std::string::npos);
  EXPECT_EQ(RowOf(id).disk_mb, 10'240);
  engine_.grow_fails.reset();
  auto changed = Wait(manager_->SetLimits("admin", id, {.memory_mb = 600, .disk_mb = 20'000}));
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->state, State::kPaused);
  EXPECT_EQ(engine_.grown[id], int64_t{20'000} << 20);
  StopServer();
  StartServer();
  ASSERT_TRUE(Wait(manager_->Resume("admin", id, {})));
  EXPECT_EQ(engine_.last_spec.limits.disk_bytes, int64_t{20'000} << 20);
  EXPECT_EQ(engine_.last_spec.limits.memory_bytes, 600 << 20);
}

TEST_F(LimitsTest, WhatIsFrozenKeepsItsLimits) {
  engine_.memory_tier = engine::Tier::kFrozen;
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->Pause("admin", id, true)));
  auto refused = Wait(manager_->SetLimits("admin", id, {.pids = 100}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
}

TEST_F(LimitsTest, WhatCannotBeChangedLaterIsRefused) {
  StartServer();
  std::string id = Make().id;
  for (LimitOptions wrong : std::vector<LimitOptions>{
           {.disk_mb = 100}, {.disk_mb = 20'000}, {.open_files = 65'537}, {.cpus = 100}}) {
    auto refused = Wait(manager_->SetLimits("admin", id, wrong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
  // What it has already is no change.
  EXPECT_TRUE(Wait(manager_->SetLimits("admin", id, {.disk_mb = 10'240, .open_files = 65'536})));
  EXPECT_EQ(Wait(manager_->SetLimits("other", id, {.cpus = 1})).error().code(), Code::kNotFound);
}

TEST_F(LimitsTest, PromisedMemoryIsBounded) {
  config_.max_promised_memory_mb = 1300;  // the template has 512
  StartServer();
  std::string id = Make().id;
  Make();
  auto full = Create({});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::kUnavailable);
  EXPECT_TRUE(Create({.memory_mb = 200}));
  EXPECT_EQ(Wait(manager_->SetLimits("admin", id, {.memory_mb = 800})).error().code(),
            Code::kUnavailable);
  EXPECT_TRUE(Wait(manager_->SetLimits("admin", id, {.memory_mb = 500})));
}

TEST_F(LimitsTest, AFullHostStartsNothing) {
  StartServer();
  std::string id = Make().id;
  ASSERT_TRUE(Wait(manager_->Pause("admin", id, true)));
  StopServer();
  config_.min_free_disk_mb = int64_t{1} << 40;
  StartServer();
  auto refused = Create({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("disk is too full"));
  auto resumed = Wait(manager_->Resume("admin", id, {}));
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code(), Code::kUnavailable);
  EXPECT_EQ(manager_->Get("admin", id)->state, State::kPaused);
  StopServer();
  config_.min_free_disk_mb = 0;
  StartServer();
  EXPECT_TRUE(Wait(manager_->Resume("admin", id, {})));
  Make();
}

TEST_F(LimitsTest, KeysHaveLimitsOfTheirOwn) {
  config_.max_sandboxes_per_key = 1;
  for (const char* name : {"small", "wide"})
    ASSERT_TRUE(Wait(store_->AddApiKey({.id = name, .name = name, .hash = name, .hint = ""})));
  ASSERT_TRUE(Wait(store_->UpdateApiKey(
      {.id = "wide", .name = "wide", .limits = {.rate_limit = 1, .max_sandboxes = 2}})));
  StartServer();
  Make(Options("small"));
  EXPECT_EQ(Wait(manager_->Create(Options("small"))).error().code(), Code::kResourceExhausted);
  Make(Options("wide"));
  Make(Options("wide"));
  EXPECT_EQ(Wait(manager_->Create(Options("wide"))).error().code(), Code::kResourceExhausted);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(manager_->Admit("small"));
  EXPECT_TRUE(manager_->Admit("wide"));
  EXPECT_TRUE(manager_->Admit("wide"));
  EXPECT_FALSE(manager_->Admit("wide"));
}

TEST_F(LimitsTest, KeysBoundTheSizeOfTheirSandboxes) {
  config_.max_sandbox_cpus = 4;
  for (const char* name : {"small", "wide"})
    ASSERT_TRUE(Wait(store_->AddApiKey({.id = name, .name = name, .hash = name, .hint = ""})));
  ASSERT_TRUE(Wait(store_->UpdateApiKey({.id = "small",
                                         .name = "small",
                                         .limits = {.max_sandbox_cpus = 1,
                                                    .max_sandbox_memory_mb = 300,
                                                    .max_sandbox_disk_mb = 500,
                                                    .max_sandbox_pids = 200,
                                                    .max_sandbox_open_files = 700,
                                                    .max_sandbox_output_kbps = 90}})));
  ASSERT_TRUE(Wait(store_->UpdateApiKey(
      {.id = "wide", .name = "wide", .limits = {.max_sandbox_cpus = 0, .max_sandbox_pids = 0}})));
  StartServer();
  // The template has 3 CPUs and 512 MB, the settings more of everything else.
  Info made = Make(Options("small"));
  EXPECT_EQ(made.cpus, 1);
  EXPECT_EQ(made.memory_mb, 300);
  EXPECT_EQ(made.disk_mb, 500);
  EXPECT_EQ(made.pids, 200);
  EXPECT_EQ(made.open_files, 700);
  EXPECT_EQ(made.output_kbps, 90);
  auto options = Options("small");
  options.limits.memory_mb = 301;
  EXPECT_EQ(Wait(manager_->Create(options)).error().message(),
            "limits.memoryMB must be from 16 to 300");
  EXPECT_EQ(Wait(manager_->SetLimits("small", made.id, {.cpus = 2})).error().message(),
            "limits.cpuCount must be from 1 to 1");
  // A key may also have more than others; what it does not say is the server's.
  options = Options("wide");
  options.limits = {.cpus = 100, .pids = 1 << 20};
  EXPECT_EQ(Make(options).cpus, 100);
  options.limits = {.memory_mb = 1 << 20};
  EXPECT_FALSE(Wait(manager_->Create(options)));
  EXPECT_EQ(Make().cpus, 3);
  // Effective at once when a key is changed.
  ASSERT_TRUE(Wait(store_->UpdateApiKey({.id = "small", .name = "small"})));
  ASSERT_TRUE(Wait(manager_->ReloadKeyLimits()));
  EXPECT_EQ(Make(Options("small")).cpus, 3);
}

TEST_F(LimitsTest, KeysBoundHowLongTheirSandboxesRun) {
  using std::chrono::seconds;
  ASSERT_TRUE(Wait(store_->AddApiKey({.id = "brief", .name = "brief", .hash = "x", .hint = ""})));
  ASSERT_TRUE(Wait(
      store_->UpdateApiKey({.id = "brief", .name = "brief", .limits = {.max_timeout_s = 60}})));
  StartServer();
  EXPECT_EQ(manager_->LongestTimeout("brief"), seconds(60));
  EXPECT_EQ(manager_->LongestTimeout("admin"), seconds(config_.max_timeout_s));
  auto options = Options("brief");
  options.timeout = seconds(61);
  EXPECT_EQ(Wait(manager_->Create(options)).error().message(),
            "Timeout cannot be greater than 60 seconds");
  options.timeout = seconds(60);
  Info made = Make(options);
  EXPECT_FALSE(Wait(manager_->Fork("brief", made.id, seconds(61), 1)));
  EXPECT_FALSE(Wait(manager_->Connect("brief", made.id, {.timeout = seconds(61)})));
  auto moved = Wait(manager_->SetTimeout("brief", made.id, seconds(1000), false));
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_LE(moved->end_at, made.started_at + seconds(60));
  ASSERT_TRUE(Wait(manager_->Pause("brief", made.id, true)));
  EXPECT_FALSE(Wait(manager_->Resume("brief", made.id, {.timeout = seconds(61)})));
  EXPECT_TRUE(Wait(manager_->Resume("brief", made.id, {.timeout = seconds(60)})));
}

TEST_F(LimitsTest, RunningOutOfSomethingIsInTheTimeline) {
  config_.metrics_interval_ms = 5;
  StartServer();
  std::string id = Make().id;
  engine_.usage.oom_kills = 1;
  engine_.usage.pids_refused = 4;
  engine_.usage.disk_used_bytes = engine_.usage.disk_total_bytes;
  ASSERT_TRUE(Until([&] { return EventTypes(id).size() >= 4; }));
  auto types = EventTypes(id);
  std::sort(types.begin(), types.end());
  EXPECT_EQ(types, (std::vector<std::string>{"created", "disk_full", "out_of_memory",
                                             "too_many_processes"}));
}

}  // namespace
}  // namespace caisson::sandbox
