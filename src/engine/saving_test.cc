// Pause, resume and snapshots of real sandboxes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/id.h"
#include "engine/steps.h"
#include "engine/test_support.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

class SavingTest : public testing::Test {
 protected:
  SavingTest() : config_(TestConfig(dir_)), engine_(std::make_unique<TestEngine>(config_)) {}

  Spec Start() {
    Spec spec = TestSpec(config_);
    auto made = engine_->Create(spec);
    EXPECT_TRUE(made) << made.error().message();
    return spec;
  }
  // A process that counts in memory, and writes down its count when asked.
  void StartCounter(const std::string& id) {
    Run(id,
        "setsid sh -c 'n=0; trap \"echo \\$n > /count\" USR1; : > /counter-ready; "
        "while :; do n=$((n+1)); sleep 0.01; done' > /dev/null 2>&1 & echo $! > /counter-pid; "
        "while [ ! -e /counter-ready ]; do sleep 0.01; done");
  }
  int64_t Count(const std::string& id) {
    return std::stoll("0" + Run(id,
                                "rm -f /count; kill -USR1 $(cat /counter-pid); "
                                "while [ ! -s /count ]; do sleep 0.01; done; cat /count"));
  }
  std::string Run(const std::string& id, const std::string& command) {
    CommandResult result = engine_->Run(id, command);
    EXPECT_EQ(result.code, 0) << command << ": " << result.output;
    return result.output;
  }
  void Restart() {
    engine_->KillAll();
    engine_ = std::make_unique<TestEngine>(config_);
  }

  TempDir dir_;
  Config config_;
  std::unique_ptr<TestEngine> engine_;
};

TEST_F(SavingTest, MemoryAndFilesSurviveAPause) {
  Spec spec = Start();
  StartCounter(spec.id);
  Run(spec.id, "echo kept > /kept; mkdir /d && mv /etc/apt /d/apt; rm /etc/hostname");
  std::string pid = Run(spec.id, "cat /counter-pid");
  std::string boot = Run(spec.id, "cat /proc/sys/kernel/random/boot_id");
  int64_t before = Count(spec.id);
  auto saved = engine_->Pause(spec.id);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->tier, Tier::kMemory) << saved->why_frozen;
  EXPECT_GT(saved->memory_bytes, 0);
  EXPECT_TRUE(engine_->List().empty());
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->continued);
  EXPECT_GE(Count(spec.id), before);
  EXPECT_EQ(Run(spec.id, "cat /kept; ls -d /d/apt; ls /etc/hostname 2>&1 | wc -l"),
            "kept\n/d/apt\n1");
  EXPECT_EQ(Run(spec.id, "cat /counter-pid"), pid);
  EXPECT_EQ(Run(spec.id, "cat /proc/sys/kernel/random/boot_id"), boot);
  EXPECT_TRUE(engine_->ListSaved().empty());
}

// A continued sandbox is built by another way than a new one; it must be the same prison.
TEST_F(SavingTest, WallsStandAfterAResume) {
  Spec spec = Start();
  constexpr const char* kLook =
      "cat /proc/sys/user/max_inotify_instances /proc/sys/user/max_inotify_watches; "
      "awk '{print $2, substr($4, 1, 2)}' /proc/self/mounts | sort; "
      "grep -o max=[0-9]* /proc/self/mounts; ls -A /sys/firmware /proc/pressure; cat /proc/keys; "
      "ulimit -Hc; ulimit -Hn; grep -E 'Cap|Seccomp|NoNew' /proc/self/status; "
      "unshare -U true 2>&1; mount -t tmpfs x /mnt 2>&1; true";
  std::string before = Run(spec.id, kLook);
  EXPECT_NE(before.find("max="), std::string::npos) << before;
  ASSERT_TRUE(engine_->Pause(spec.id));
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  ASSERT_TRUE(resumed->continued);
  EXPECT_EQ(Run(spec.id, kLook), before);
}

TEST_F(SavingTest, FilesOnlyIsAColdBoot) {
  Spec spec = Start();
  std::string boot = Run(spec.id, "cat /proc/sys/kernel/random/boot_id; echo kept > /kept");
  auto saved = engine_->Pause(spec.id, false);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->tier, Tier::kFiles);
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_FALSE(resumed->continued);
  EXPECT_EQ(Run(spec.id, "cat /kept"), "kept");
  EXPECT_NE(Run(spec.id, "cat /proc/sys/kernel/random/boot_id"), boot);
}

TEST_F(SavingTest, ASavedSandboxCanBeStartedWithoutItsMemory) {
  Spec spec = Start();
  Run(spec.id, "echo kept > /kept");
  ASSERT_TRUE(engine_->Pause(spec.id));
  auto resumed = engine_->Resume(spec, false);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_FALSE(resumed->continued);
  EXPECT_EQ(Run(spec.id, "cat /kept"), "kept");
}

TEST_F(SavingTest, PausedSandboxesSurviveTheEngine) {
  Spec spec = Start();
  StartCounter(spec.id);
  int64_t before = Count(spec.id);
  ASSERT_TRUE(engine_->Pause(spec.id));
  Restart();
  ASSERT_EQ(engine_->ListSaved().size(), 1u);
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_GE(Count(spec.id), before);
  // And again, on the disk of an earlier engine.
  ASSERT_TRUE(engine_->Pause(spec.id));
  ASSERT_TRUE(engine_->Resume(spec));
  EXPECT_GE(Count(spec.id), before);
}

TEST_F(SavingTest, ManySandboxesGrowFromOneSnapshot) {
  Spec source = Start();
  StartCounter(source.id);
  Run(source.id, "echo original > /who; dd if=/dev/urandom of=/big bs=1M count=4 2>/dev/null");
  std::string digest = Run(source.id, "sha256sum /big");
  std::string snapshot = RandomId("s", 20);
  auto saved = engine_->Snapshot(source.id, snapshot);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->tier, Tier::kMemory);
  int64_t at_snapshot = Count(source.id);
  Run(source.id, "echo changed > /who");
  std::vector<Spec> forks;
  for (int i = 0; i < 4; ++i) {
    forks.push_back(TestSpec(config_));
    forks.back().snapshot = snapshot;
  }
  for (const auto& made : engine_->CreateMany(forks)) {
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_TRUE(made->continued);
  }
  ASSERT_TRUE(engine_->DeleteSaved(snapshot));
  for (const Spec& fork : forks) {
    EXPECT_EQ(Run(fork.id, "cat /who"), "original");
    EXPECT_EQ(Run(fork.id, "sha256sum /big"), digest);
    EXPECT_GT(Count(fork.id), 0);
    Run(fork.id, "echo " + fork.id + " > /who");
  }
  EXPECT_GE(Count(source.id), at_snapshot);
  for (const Spec& fork : forks) EXPECT_EQ(Run(fork.id, "cat /who"), fork.id);
  EXPECT_EQ(Run(source.id, "cat /who"), "changed");
  // A fork can be paused like any other: its layer is kept for it.
  ASSERT_TRUE(engine_->Pause(forks[0].id));
  auto resumed = engine_->Resume(forks[0]);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_EQ(Run(forks[0].id, "cat /who"), forks[0].id);
}

TEST_F(SavingTest, ASnapshotOfFilesOnlyStartsCold) {
  Spec source = Start();
  StartCounter(source.id);
  Run(source.id, "echo kept > /kept");
  std::string snapshot = RandomId("s", 20);
  auto saved = engine_->Snapshot(source.id, snapshot, /*memory=*/false);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->tier, Tier::kFiles);
  EXPECT_EQ(saved->memory_bytes, 0);
  EXPECT_GT(Count(source.id), 0);
  Spec cold = TestSpec(config_);
  cold.snapshot = snapshot;
  auto made = engine_->Create(cold);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_FALSE(made->continued);
  EXPECT_EQ(Run(cold.id, "cat /kept"), "kept");
}

TEST_F(SavingTest, LayersGoWithTheirLastUser) {
  fs::path layers = config_.data_dir + "/engine/layers";
  auto count = [&] {
    return std::count_if(fs::directory_iterator(layers), fs::directory_iterator(),
                         [](const auto& entry) { return entry.path().extension() == ".img"; });
  };
  Spec source = Start();
  std::string snapshot = RandomId("s", 20);
  ASSERT_TRUE(engine_->Snapshot(source.id, snapshot));
  EXPECT_EQ(count(), 1);
  Spec fork = TestSpec(config_);
  fork.snapshot = snapshot;
  ASSERT_TRUE(engine_->Create(fork));
  ASSERT_TRUE(engine_->DeleteSaved(snapshot));
  EXPECT_EQ(count(), 1);
  ASSERT_TRUE(engine_->Destroy(fork.id));
  EXPECT_EQ(count(), 0);
}

TEST_F(SavingTest, WhatCriuCannotTakeIsFrozen) {
  config_.save_memory = false;
  engine_.reset();
  engine_ = std::make_unique<TestEngine>(config_);
  Spec spec = Start();
  StartCounter(spec.id);
  int64_t before = Count(spec.id);
  auto saved = engine_->Pause(spec.id);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->tier, Tier::kFrozen);
  EXPECT_NE(saved->why_frozen, "");
  EXPECT_TRUE(engine_->List().empty());
  Restart();
  ASSERT_EQ(engine_->ListSaved().size(), 1u);
  EXPECT_EQ(engine_->ListSaved()[0].tier, Tier::kFrozen);
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->continued);
  EXPECT_GE(Count(spec.id), before);
  // Frozen ones can be started cold too.
  Run(spec.id, "echo kept > /kept");
  ASSERT_TRUE(engine_->Pause(spec.id));
  resumed = engine_->Resume(spec, false);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_FALSE(resumed->continued);
  EXPECT_EQ(Run(spec.id, "cat /kept"), "kept");
}

TEST_F(SavingTest, AFailedPauseLeavesTheSandboxRunning) {
  for (Step step : {Step::kFreeze, Step::kSync, Step::kDump, Step::kCommit}) {
    SCOPED_TRACE(StepName(step));
    engine_.reset();
    config_.engine_fail_at = StepName(step);
    engine_ = std::make_unique<TestEngine>(config_);
    Spec spec = Start();
    StartCounter(spec.id);
    int64_t before = Count(spec.id);
    for (bool snapshot : {false, true}) {
      auto saved = snapshot ? engine_->Snapshot(spec.id, "s1") : engine_->Pause(spec.id);
      ASSERT_FALSE(saved);
      EXPECT_NE(saved.error().message().find(StepName(step)), std::string::npos);
      EXPECT_GE(Count(spec.id), before);
      EXPECT_TRUE(engine_->ListSaved().empty());
    }
    EXPECT_TRUE(fs::is_empty(config_.data_dir + "/engine/saved"));
  }
}

TEST_F(SavingTest, AFailedResumeLeavesItPaused) {
  Spec spec = Start();
  StartCounter(spec.id);
  int64_t before = Count(spec.id);
  ASSERT_TRUE(engine_->Pause(spec.id));
  for (Step step :
       {Step::kSlot, Step::kCgroup, Step::kDisk, Step::kRoot, Step::kRestore, Step::kIdentity}) {
    SCOPED_TRACE(StepName(step));
    config_.engine_fail_at = StepName(step);
    Restart();
    auto resumed = engine_->Resume(spec);
    ASSERT_FALSE(resumed);
    EXPECT_NE(resumed.error().message().find(StepName(step)), std::string::npos);
    EXPECT_EQ(engine_->ListSaved().size(), 1u);
    Census census = Take(*engine_);
    EXPECT_EQ(census["processes"] + census["slots"] + census["cgroups"], 0);
  }
  config_.engine_fail_at = "";
  Restart();
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_GE(Count(spec.id), before);
}

// Whatever the engine was doing when it was killed: afterwards the sandbox runs or is paused, and
// nothing of it is lost or there twice.
TEST_F(SavingTest, KilledAtAnyMomentItIsWholeAfterwards) {
  Spec spec = Start();
  StartCounter(spec.id);
  Run(spec.id, "echo kept > /kept");
  int64_t before = Count(spec.id);
  int paused = 0, running = 0;
  for (int moment = 0; moment < 24; ++moment) {
    SCOPED_TRACE(moment);
    engine_->PauseAndKillAll(spec.id, std::chrono::milliseconds(moment * 12));
    engine_ = std::make_unique<TestEngine>(config_);
    size_t lives = engine_->List().size(), saved = engine_->ListSaved().size();
    ASSERT_EQ(lives + saved, 1u);
    (lives ? running : paused) += 1;
    if (saved) ASSERT_TRUE(engine_->Resume(spec));
    EXPECT_EQ(Run(spec.id, "cat /kept"), "kept");
    int64_t now = Count(spec.id);
    EXPECT_GE(now, before);
    before = now;
  }
  printf("killed while pausing: %d went on, %d were paused\n", running, paused);
}

// CRIU outlives everybody else: it has the record's lock and the sandbox stands still.
TEST_F(SavingTest, WhatIsStillBeingSavedAtAStartGoesOnAfterwards) {
  Spec spec = TestSpec(config_);
  auto made = engine_->Create(spec);
  ASSERT_TRUE(made) << made.error().message();
  StartCounter(spec.id);
  int64_t before = Count(spec.id);
  UniqueFd lock(open((config_.data_dir + "/engine/sandboxes/" + spec.id + ".json").c_str(),
                     O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(lock.get(), LOCK_SH | LOCK_NB), 0);
  std::string groups = ReadFile(fmt::format("/proc/{}/cgroup", made->pid)).value_or("");
  size_t at = groups.find("0::/");
  ASSERT_NE(at, std::string::npos);
  std::string root =
      fs::exists("/sys/fs/cgroup/unified") ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
  std::string group = root + groups.substr(at + 3, groups.find('\n', at) - at - 3);
  ASSERT_TRUE(WriteKernelFile(group + "/cgroup.freeze", "1"));

  Restart();
  EXPECT_THAT(engine_->List(), testing::ElementsAre(spec.id));
  Limits limits = spec.limits;
  limits.pids = 100;
  auto changed = engine_->SetLimits(spec.id, limits);
  ASSERT_FALSE(changed);  // the lock must not get lost
  EXPECT_EQ(changed.error().code(), Code::kAborted) << changed.error().message();
  lock.Reset();
  EXPECT_GE(Count(spec.id), before);
}

TEST_F(SavingTest, LimitsChangeWhileItRuns) {
  Spec spec = Start();
  Limits limits = spec.limits;
  limits.memory_bytes = 512 << 20;
  limits.pids = 64;
  ASSERT_TRUE(engine_->SetLimits(spec.id, limits));
  EXPECT_EQ(engine_->Measure(spec.id)->memory_limit_bytes, 512 << 20);
  limits.disk_bytes *= 2;
  EXPECT_EQ(engine_->SetLimits(spec.id, limits).error().code(), Code::kInvalidArgument);
}

TEST_F(SavingTest, OpenFilesBecomeFewerForAllThatRunsAndStaySo) {
  Spec spec = Start();
  Run(spec.id, "setsid sleep 1000 > /dev/null 2>&1 & echo $! > /pid");
  const std::string limits_of = "grep 'Max open files' /proc/$(cat /pid)/limits /proc/1/limits";
  Limits limits = spec.limits;
  limits.open_files = 100;
  Status set = engine_->SetLimits(spec.id, limits);
  ASSERT_TRUE(set) << set.error().message();
  auto lines = [&] { return Run(spec.id, limits_of + " | awk '{print $4, $5}'"); };
  EXPECT_EQ(lines(), "100 100\n100 100");
  EXPECT_EQ(Run(spec.id, "ulimit -n; ulimit -Hn"), "100\n100");
  limits.open_files = 200;  // no process gets back what it has lost
  ASSERT_TRUE(engine_->SetLimits(spec.id, limits));
  EXPECT_EQ(lines(), "100 100\n100 100");
  // One that is continued with fewer has fewer.
  ASSERT_TRUE(engine_->Pause(spec.id));
  spec.limits.open_files = 80;
  auto resumed = engine_->Resume(spec);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_EQ(lines(), "80 80\n80 80");
}

TEST_F(SavingTest, ADiskGrowsWhileItsSandboxIsPaused) {
  Spec spec = Start();
  StartCounter(spec.id);
  Run(spec.id, "head -c 20000000 /dev/urandom > /big && sha256sum /big > /sum");
  int64_t before = Count(spec.id), total = engine_->Measure(spec.id)->disk_total_bytes;
  EXPECT_EQ(engine_->GrowDisk(spec.id, spec.limits.disk_bytes * 2).error().code(),
            Code::kFailedPrecondition);
  ASSERT_TRUE(engine_->Pause(spec.id));
  // Once from this engine's disks, once from those of the one before.
  for (int times = 0; times < 2; ++times) {
    spec.limits.disk_bytes *= 3;
    Status grown = engine_->GrowDisk(spec.id, spec.limits.disk_bytes);
    ASSERT_TRUE(grown) << grown.error().message();
    auto resumed = engine_->Resume(spec);
    ASSERT_TRUE(resumed) << resumed.error().message();
    EXPECT_GE(Count(spec.id), before);
    EXPECT_EQ(Run(spec.id, "sha256sum -c /sum"), "/big: OK");
    EXPECT_GT(engine_->Measure(spec.id)->disk_total_bytes, std::exchange(total, total * 2) * 2);
    ASSERT_TRUE(engine_->Pause(spec.id));
    Restart();
  }
  EXPECT_TRUE(engine_->GrowDisk(spec.id, 1 << 20));  // it is larger already
  EXPECT_EQ(engine_->GrowDisk("nothing", 1 << 30).error().code(), Code::kNotFound);
  ASSERT_TRUE(engine_->Resume(spec, /*memory=*/false));
  EXPECT_EQ(Run(spec.id, "sha256sum -c /sum"), "/big: OK");
}

TEST_F(SavingTest, DamagedMemoryIsRefusedAndTheFilesAreKept) {
  Spec spec = Start();
  Run(spec.id, "echo kept > /kept");
  ASSERT_TRUE(engine_->Pause(spec.id));
  fs::path image = config_.data_dir + "/engine/saved/" + spec.id + "/memory/images.pack";
  std::fstream(image, std::ios::in | std::ios::out).seekp(20).put('x');
  auto resumed = engine_->Resume(spec);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code(), Code::kDataLoss);
  EXPECT_NE(resumed.error().message().find("images.pack"), std::string::npos);
  resumed = engine_->Resume(spec, false);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_EQ(Run(spec.id, "cat /kept"), "kept");
}

}  // namespace
}  // namespace caisson::engine
