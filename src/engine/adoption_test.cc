// Sandboxes outlive the engine, and the next engine finds them; dead and half-made ones it removes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "base/file.h"
#include "engine/pidfd.h"
#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::UnorderedElementsAre;

class AdoptionTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  void Start() { engine_ = std::make_unique<TestEngine>(TestConfig(dir_)); }
  Instance Create() {
    auto instance = engine_->Create(TestSpec(engine_->config()));
    EXPECT_TRUE(instance) << instance.error().message();
    return instance.value_or(Instance{});
  }
  std::string RecordPath(const std::string& id) {
    return engine_->config().data_dir + "/engine/sandboxes/" + id + ".json";
  }

  TempDir dir_;
  std::unique_ptr<TestEngine> engine_;
};

TEST_F(AdoptionTest, SandboxesSurviveTheDeathOfEngineAndLaunchers) {
  Instance first = Create(), second = Create();
  engine_->Run(first.id, "echo kept > /home/user/note; sleep 1000 >/dev/null 2>&1 &");
  engine_->KillAll();
  Start();
  EXPECT_THAT(engine_->List(), UnorderedElementsAre(first.id, second.id));
  EXPECT_EQ(engine_->Run(first.id, "cat /home/user/note; pgrep -c sleep").output, "kept\n1");
  auto usage = engine_->Measure(first.id);
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_GT(usage->disk_total_bytes, 0);
  EXPECT_GT(usage->cpu_ns, 0);
  // The end of an adopted one is noticed too.
  auto process = OpenProcess(second.pid);
  ASSERT_TRUE(process);
  SendSignal(process->get(), SIGKILL);
  ASSERT_TRUE(engine_->AwaitExit(second.id, std::chrono::seconds(30)));
  ASSERT_TRUE(engine_->Destroy(first.id));
  Census rest = Take(*engine_);
  rest["links"] = rest["loops"] = rest["slots"] = rest["cgroups"] = rest["processes"] = 0;
  rest["files"] = 0;
  EXPECT_EQ(AwaitCensus(*engine_, rest), rest);
}

TEST_F(AdoptionTest, SandboxesSurviveAnOrderlyEnd) {
  Instance instance = Create();
  engine_->Disconnect();
  Start();
  EXPECT_THAT(engine_->List(), UnorderedElementsAre(instance.id));
  EXPECT_EQ(engine_->Run(instance.id, "echo here").output, "here");
}

TEST_F(AdoptionTest, WhatDiedMeanwhileIsRemoved) {
  Instance instance = Create();
  auto process = OpenProcess(instance.pid);
  ASSERT_TRUE(process);
  engine_->KillAll();
  SendSignal(process->get(), SIGKILL);
  ASSERT_TRUE(WaitForExit(process->get(), std::chrono::seconds(30)));
  Start();
  EXPECT_TRUE(engine_->List().empty());
  Census census = Take(*engine_);
  for (const char* kind : {"files", "slots", "cgroups", "loops", "processes"})
    EXPECT_EQ(census[kind], 0) << kind;
}

TEST_F(AdoptionTest, WhatWasBeingBuiltIsRemoved) {
  std::vector<int> pids = engine_->launchers();
  pids.push_back(engine_->pid());
  Spec spec = TestSpec(engine_->config());
  spec.boot = "hang";
  std::thread killer([&] {
    EXPECT_TRUE(AwaitProcess(spec.id));
    for (int pid : pids) kill(pid, SIGKILL);
  });
  auto failed = engine_->Create(spec);
  killer.join();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kUnavailable);
  engine_->KillAll();
  Start();
  EXPECT_TRUE(engine_->List().empty());
  Census census = Take(*engine_);
  for (const char* kind : {"files", "slots", "cgroups", "loops", "processes"})
    EXPECT_EQ(census[kind], 0) << kind;
}

TEST_F(AdoptionTest, ARecordThatDoesNotFitItsProcessIsNotTrusted) {
  // A pid that came back as another process, another boot, a sandbox that was never ready, a
  // damaged file: all are removed, and the process behind the number is not touched unless it is
  // in the sandbox's own cgroup.
  Instance pid = Create(), boot = Create(), unready = Create(), damaged = Create(), good = Create();
  engine_->KillAll();
  auto edit = [&](const std::string& id, const std::string& from, const std::string& to) {
    std::string text = ReadFile(RecordPath(id)).value_or("");
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    ASSERT_TRUE(WriteFileAtomic(RecordPath(id), text, 0600));
  };
  edit(pid.id, "\"start_time\":", "\"start_time\":9");
  edit(boot.id, "\"boot_id\":\"", "\"boot_id\":\"x");
  edit(damaged.id, "{", "");
  std::filesystem::path ready = RecordPath(unready.id), building = ready;
  std::filesystem::rename(ready, building.replace_extension(".building"));
  Start();
  EXPECT_THAT(engine_->List(), UnorderedElementsAre(good.id));
  Census census = Take(*engine_);
  EXPECT_EQ(census["files"], 2);  // its record and its boot id
  EXPECT_EQ(census["slots"], 1);
  EXPECT_EQ(engine_->Run(good.id, "echo fine").output, "fine");
}

TEST_F(AdoptionTest, TwoServersOnOneMachineDoNotMeet) {
  TempDir other_dir;
  TestEngine other(TestConfig(other_dir));
  Instance ours = Create();
  Spec theirs = TestSpec(other.config());
  auto created = other.Create(theirs);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_THAT(engine_->List(), UnorderedElementsAre(ours.id));
  EXPECT_THAT(other.List(), UnorderedElementsAre(theirs.id));
  EXPECT_NE(engine_->Run(ours.id, "cat /proc/self/uid_map").output,
            other.Run(theirs.id, "cat /proc/self/uid_map").output);
  engine_->KillAll();
  Start();  // must not remove the other's
  EXPECT_EQ(other.Run(theirs.id, "echo untouched").output, "untouched");
}

TEST_F(AdoptionTest, OneDataDirectoryHasOneEngine) {
  Instance instance = Create();
  // The second waits for the first to end, which it does soon.
  auto first = std::move(engine_);
  auto begin = std::chrono::steady_clock::now();
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    first->Disconnect();
  });
  Start();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
  end.join();
  EXPECT_THAT(engine_->List(), UnorderedElementsAre(instance.id));
}

}  // namespace
}  // namespace caisson::engine
