// What one sandbox may use: asked for at creation, changed later, kept over a restart.
#include "sandbox/limits.h"

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
  config_.sandbox_output_kbps = 100;
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

TEST_F(LimitsTest, AChangeTakesEffectAndSurvivesARestart) {
  StartServer();
  std::string id = Make().id;
  auto changed = Wait(manager_->SetLimits("admin", id, {.memory_mb = 700, .pids = 33}));
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(engine_.instances[id].limits.memory_bytes, 700 << 20);
  EXPECT_EQ(engine_.instances[id].limits.pids, 33);
  EXPECT_EQ(EventTypes(id), (std::vector<std::string>{"created", "limits_set"}));
  StopServer();
  StartServer();
  Info info = manager_->Get("admin", id).value();
  EXPECT_EQ(info.memory_mb, 700);
  EXPECT_EQ(info.pids, 33);
  EXPECT_EQ(info.cpus, 3);
}

TEST_F(LimitsTest, WhatIsSettledAtTheStartCannotBeChanged) {
  StartServer();
  std::string id = Make().id;
  for (LimitOptions wrong : std::vector<LimitOptions>{
           {.open_files = 100}, {.output_kbps = 100}, {.disk_mb = 100}, {.cpus = 100}}) {
    auto refused = Wait(manager_->SetLimits("admin", id, wrong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
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
