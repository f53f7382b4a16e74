// The limits of a sandbox hold, whatever runs inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;

class LimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto instance = engine_.Create(spec_);
    ASSERT_TRUE(instance) << instance.error().message();
  }

  TempDir dir_;
  TestEngine engine_{TestConfig(dir_)};
  Spec spec_ = TestSpec(engine_.config());
};

TEST_F(LimitsTest, MemoryHogIsKilledAndTheSandboxLives) {
  CommandResult hog = engine_.Run(spec_.id, "python3 -c 'x=bytearray(600<<20); print(len(x))'");
  EXPECT_EQ(hog.code, 137) << hog.output;
  EXPECT_EQ(engine_.Run(spec_.id, "echo alive").output, "alive");
  auto usage = engine_.Measure(spec_.id);
  ASSERT_TRUE(usage);
  EXPECT_GE(usage->oom_kills, 1);
}

TEST_F(LimitsTest, ForkBombEndsAtTheLimitOfProcesses) {
  // They live until all have been tried, and hold nothing that the answer waits for.
  CommandResult bomb = engine_.Run(
      spec_.id, "i=0; while [ $i -lt 300 ]; do sleep 600 & i=$((i+1)); done >/dev/null 2>&1");
  EXPECT_NE(bomb.code, 0);
  auto usage = engine_.Measure(spec_.id);
  ASSERT_TRUE(usage);
  EXPECT_LE(usage->pids, spec_.limits.pids);
}

TEST_F(LimitsTest, DiskIsFullAtItsLimit) {
  CommandResult full = engine_.Run(
      spec_.id,
      "dd if=/dev/zero of=/home/user/big bs=1M count=400 2>&1; stat -c %s /home/user/big");
  EXPECT_THAT(full.output, HasSubstr("No space left on device"));
  auto usage = engine_.Measure(spec_.id);
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->disk_used_bytes, spec_.limits.disk_bytes * 8 / 10);
  // Also for root, also in /tmp and /dev/shm: they are on the same disk.
  EXPECT_THAT(engine_.Run(spec_.id, "dd if=/dev/zero of=/dev/shm/x bs=1M count=100 2>&1").output,
              HasSubstr("No space left on device"));
  EXPECT_EQ(
      engine_.Run(spec_.id, "rm /home/user/big /dev/shm/x && echo y > /tmp/z && cat /tmp/z").output,
      "y");
}

TEST_F(LimitsTest, CpuTimeIsBounded) {
  // Two busy processes for one second of time may use one CPU second; on a busy machine they take
  // longer.
  auto begin = std::chrono::steady_clock::now();
  auto before = engine_.Measure(spec_.id);
  engine_.Run(spec_.id,
              "timeout 1 sh -c 'while :; do :; done' & "
              "timeout 1 sh -c 'while :; do :; done'; wait");
  auto after = engine_.Measure(spec_.id);
  ASSERT_TRUE(before && after);
  auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LT(after->cpu_ns - before->cpu_ns, took * 7 / 5);
}

TEST_F(LimitsTest, WhenEnvdItselfRunsOutOfMemoryItIsReported) {
  Spec spec = TestSpec(engine_.config());
  spec.limits.memory_bytes = 32 << 20;
  ASSERT_TRUE(engine_.Create(spec));
  // What init holds counts; the kernel's choice falls on it once it is the largest.
  engine_.Run(spec.id, "kill -USR1 1", std::chrono::seconds(5));
  auto reason = engine_.AwaitExit(spec.id, std::chrono::seconds(60));
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, ExitReason::kOutOfMemory);
}

}  // namespace
}  // namespace caisson::engine
