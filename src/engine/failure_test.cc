// Whatever fails, and whoever dies: nothing is left, and the next sandbox works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/pidfd.h"
#include "engine/steps.h"
#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;

TEST(FailureTest, AFailureAtAnyStepLeavesNothing) {
  for (size_t i = 0; i < static_cast<size_t>(Step::kRestore); ++i) {
    for (const char* when : {"", "after:"}) {
      TempDir dir;
      Config config = TestConfig(dir);
      config.launchers = 1;
      config.engine_fail_at = fmt::format("{}{}", when, StepName(static_cast<Step>(i)));
      SCOPED_TRACE(config.engine_fail_at);
      TestEngine engine(config);
      // The first one opens what a launcher opens on first use.
      ASSERT_FALSE(engine.Create(TestSpec(config)));
      Census before = Take(engine);
      before["links"] = before["loops"] = before["processes"] = 0;
      before["slots"] = before["cgroups"] = before["files"] = 0;
      auto failed = engine.Create(TestSpec(config));
      ASSERT_FALSE(failed);
      EXPECT_THAT(failed.error().message(), HasSubstr(config.engine_fail_at));
      EXPECT_EQ(AwaitCensus(engine, before), before);
    }
  }
}

// Resident memory of a process in KiB.
int64_t ResidentKb(int pid) {
  auto status = ReadFile(fmt::format("/proc/{}/status", pid)).value_or("");
  size_t at = status.find("VmRSS:");
  if (at == std::string::npos) return 0;
  return std::strtoll(status.c_str() + at + 6, nullptr, 10);
}

int64_t EngineMemoryKb(const TestEngine& engine) {
  int64_t sum = ResidentKb(engine.pid());
  for (int pid : engine.launchers()) sum += ResidentKb(pid);
  return sum;
}

TEST(FailureTest, AThousandSandboxesLeaveNothingBehind) {
  TempDir dir;
  TestEngine engine(TestConfig(dir));
  engine.WarmUp();
  constexpr int kRounds = 50, kEach = 20;
  Census before = Take(engine);
  int64_t memory_before = 0;
  auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Spec> specs;
    std::vector<std::string> ids;
    for (int i = 0; i < kEach; ++i) {
      specs.push_back(TestSpec(engine.config()));
      ids.push_back(specs.back().id);
    }
    for (const auto& instance : engine.CreateMany(specs))
      ASSERT_TRUE(instance) << instance.error().message();
    ASSERT_TRUE(engine.DestroyMany(ids));
    if (round == kRounds / 5) memory_before = EngineMemoryKb(engine);
  }
  auto took = std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", static_cast<int>(took / std::chrono::seconds(1)));
  EXPECT_EQ(AwaitCensus(engine, before), before);
  EXPECT_LT(EngineMemoryKb(engine) - memory_before, 1024);
}

TEST(FailureTest, ALauncherKilledWhileBuildingIsReplacedAndItsSandboxRemoved) {
  TempDir dir;
  Config config = TestConfig(dir);
  config.launchers = 1;
  TestEngine engine(config);
  engine.WarmUp();
  Census before = Take(engine);
  int launcher = engine.launchers().at(0);
  Spec spec = TestSpec(config);
  spec.boot = "hang";
  std::thread killer([&] {
    EXPECT_TRUE(AwaitProcess(spec.id));
    kill(launcher, SIGKILL);
  });
  auto failed = engine.Create(spec);
  killer.join();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("died"));
  Spec next = TestSpec(config);
  auto instance = engine.Create(next);
  ASSERT_TRUE(instance) << instance.error().message();
  EXPECT_EQ(engine.Run(next.id, "echo works").output, "works");
  ASSERT_TRUE(engine.Destroy(next.id));
  EXPECT_EQ(engine.launchers().size(), 1u);
  EXPECT_EQ(AwaitCensus(engine, before), before);
}

TEST(FailureTest, IdleLaunchersThatDieAreReplaced) {
  TempDir dir;
  TestEngine engine(TestConfig(dir));
  std::vector<int> first = engine.launchers();
  for (int pid : first) kill(pid, SIGKILL);
  // Who was killed may be there for a while.
  auto replaced = [&] {
    std::vector<int> now = engine.launchers();
    return now.size() == first.size() &&
           std::ranges::none_of(now, [&](int pid) { return std::ranges::count(first, pid) > 0; });
  };
  for (int i = 0; i < 3000 && !replaced(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(replaced());
  Spec spec = TestSpec(engine.config());
  auto instance = engine.Create(spec);
  ASSERT_TRUE(instance) << instance.error().message();
  EXPECT_EQ(engine.Run(spec.id, "echo works").output, "works");
}

TEST(FailureTest, EngineAndLaunchersEndWithTheServer) {
  TempDir dir;
  Config config = TestConfig(dir);
  std::vector<UniqueFd> processes;
  {
    TestEngine engine(config);
    for (int pid : engine.launchers()) processes.push_back(OpenProcess(pid).value());
    processes.push_back(OpenProcess(engine.pid()).value());
    ASSERT_TRUE(engine.Create(TestSpec(config)));
  }
  for (const UniqueFd& process : processes)
    EXPECT_TRUE(WaitForExit(process.get(), std::chrono::seconds(30)));
}

}  // namespace
}  // namespace caisson::engine
