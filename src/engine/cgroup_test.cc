// The cgroups of the machine, for real: every limit bites. The same tests hold for the v2 and the
// hybrid layout; which one runs is what the machine has.
#include "engine/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/file.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatience{30'000};  // with a busy machine

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    auto layout = CgroupLayout::Detect();
    ASSERT_TRUE(layout) << layout.error().message();
    layout_ = *layout;
    auto parent = CgroupParent::Open(layout_, fmt::format("test{}", getpid()));
    ASSERT_TRUE(parent) << parent.error().message();
    parent_ = std::move(*parent);
    counter_ = static_cast<std::atomic<int>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override {
    munmap(counter_, 4096);
    EXPECT_TRUE(parent_->List()->empty());
    parent_->RemoveIfEmpty();
    for (const std::string& base : layout_.bases) {
      if (base.empty()) continue;
      EXPECT_NE(access(fmt::format("{}/caisson-test{}", base, getpid()).c_str(), F_OK), 0);
    }
  }

  Cgroup Make(const Limits& limits, std::string_view id = "sb1") {
    auto cgroup = Cgroup::Create(*parent_, id, limits);
    EXPECT_TRUE(cgroup) << cgroup.error().message();
    return cgroup ? std::move(*cgroup) : Cgroup();
  }

  // Starts `body` in a child that is inside from its first instruction on.
  pid_t Start(const Cgroup& cgroup, const std::function<int()>& body) {
    auto entry = cgroup.PrepareEntry();
    EXPECT_TRUE(entry) << entry.error().message();
    clone_args args{};
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<uint64_t>(entry->v2.get());
    auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
    EXPECT_GE(pid, 0) << strerror(errno);
    if (pid == 0) {
      auto begin = Clock::now();
      Status entered = entry->EnterV1();
      counter_[1] = static_cast<int>((Clock::now() - begin) / std::chrono::nanoseconds(1));
      _exit(entered ? body() : 99);
    }
    return pid;
  }
  static int Wait(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
  // Waits until the counter has at least this value.
  bool Reaches(int value) {
    auto deadline = Clock::now() + std::chrono::seconds(60);
    while (counter_->load() < value && Clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    return counter_->load() >= value;
  }

  CgroupLayout layout_;
  std::unique_ptr<CgroupParent> parent_;
  std::atomic<int>* counter_ = nullptr;  // shared with children; [1]: nanoseconds of EnterV1()
};

constexpr Limits kSmall{.cpus = 1, .memory_bytes = 64 << 20, .pids = 10};

int TouchMemory(size_t bytes) {
  char* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
  return 0;
}

TEST_F(CgroupTest, MemoryBeyondTheLimitKillsAndCounts) {
  Cgroup cgroup = Make(kSmall);
  EXPECT_EQ(Wait(Start(cgroup, [] { return TouchMemory(32 << 20); })), 0);
  Usage usage;
  ASSERT_TRUE(cgroup.Measure(usage));
  EXPECT_EQ(usage.oom_kills, 0);
  EXPECT_EQ(usage.memory_limit_bytes, 64 << 20);

  int status = Wait(Start(cgroup, [] { return TouchMemory(200 << 20); }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_TRUE(cgroup.Measure(usage));
  EXPECT_EQ(usage.oom_kills, 1);
}

TEST_F(CgroupTest, PidsBeyondTheLimitAreRefused) {
  Cgroup cgroup = Make(kSmall);
  int status = Wait(Start(cgroup, [] {
    for (int i = 0; i < 20; ++i) {
      pid_t pid = fork();
      if (pid == 0) {
        pause();
        _exit(0);
      }
      if (pid < 0) return errno == EAGAIN ? i : 100;
    }
    return 101;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 9);  // the child itself is the tenth
  Usage usage;
  ASSERT_TRUE(cgroup.Measure(usage));
  EXPECT_EQ(usage.pids, 9);
}

TEST_F(CgroupTest, CpuTimeStaysBelowTheQuota) {
  Limits limits = kSmall;
  Cgroup cgroup = Make(limits);
  std::vector<pid_t> children;
  auto begin = Clock::now();
  for (int i = 0; i < 4; ++i)
    children.push_back(Start(cgroup, [] {
      for (volatile int64_t n = 0;; n = n + 1) {
      }
      return 0;
    }));
  std::this_thread::sleep_for(milliseconds(800));
  Usage usage;
  ASSERT_TRUE(cgroup.Measure(usage));
  auto wall = std::chrono::nanoseconds(Clock::now() - begin).count();
  // One CPU's worth, and what a period may run over on two CPUs.
  EXPECT_LT(usage.cpu_ns, wall * 5 / 4);
  EXPECT_GT(usage.cpu_ns, 0);
  ASSERT_TRUE(cgroup.Remove(kPatience));
  for (pid_t pid : children) EXPECT_EQ(WTERMSIG(Wait(pid)), SIGKILL);
}

TEST_F(CgroupTest, KillReachesEveryDescendantEvenFrozen) {
  Cgroup cgroup = Make(kSmall);
  pid_t pid = Start(cgroup, [this] {
    for (int i = 0; i < 4; ++i)
      if (fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        counter_->fetch_add(1);
        pause();
      }
    pause();
    return 0;
  });
  ASSERT_TRUE(Reaches(4));
  EXPECT_GE(cgroup.Processes()->size(), 5u);
  ASSERT_TRUE(cgroup.Freeze(kPatience));
  ASSERT_TRUE(cgroup.Kill());
  ASSERT_TRUE(cgroup.WaitEmpty(kPatience));
  EXPECT_EQ(WTERMSIG(Wait(pid)), SIGKILL);
}

TEST_F(CgroupTest, KnowsEveryOneOfManyProcesses) {
  constexpr int kMany = 1'500;
  Cgroup cgroup = Make({.cpus = 1, .memory_bytes = 512 << 20, .pids = kMany + 10});
  pid_t pid = Start(cgroup, [this] {
    for (int i = 0; i < kMany; ++i)
      if (fork() == 0) {
        counter_->fetch_add(1);
        pause();
      }
    pause();
    return 0;
  });
  ASSERT_TRUE(Reaches(kMany));
  EXPECT_EQ(cgroup.Processes()->size(), kMany + 1u);
  ASSERT_TRUE(cgroup.Kill());
  ASSERT_TRUE(cgroup.WaitEmpty(kPatience));
  Wait(pid);
}

TEST_F(CgroupTest, FreezeStopsAndThawGoesOn) {
  Cgroup cgroup = Make(kSmall);
  pid_t pid = Start(cgroup, [this] {
    while (true) counter_->fetch_add(1);
    return 0;
  });
  ASSERT_TRUE(Reaches(1000));
  ASSERT_TRUE(cgroup.Freeze(kPatience));
  EXPECT_TRUE(*cgroup.frozen());
  int before = counter_->load();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(counter_->load(), before);
  ASSERT_TRUE(cgroup.Thaw(kPatience));
  EXPECT_FALSE(*cgroup.frozen());
  EXPECT_TRUE(Reaches(before + 1000));
  ASSERT_TRUE(cgroup.Remove(kPatience));
  Wait(pid);
}

TEST_F(CgroupTest, KeptCgroupIsAdoptedByALaterProcess) {
  Make(kSmall).Keep();
  EXPECT_THAT(*parent_->List(), testing::ElementsAre("sb1"));
  auto again = Cgroup::Create(*parent_, "sb1", kSmall);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  auto adopted = Cgroup::Open(*parent_, "sb1");
  ASSERT_TRUE(adopted);
  {
    Cgroup handle = std::move(*Cgroup::Open(*parent_, "sb1"));
  }
  EXPECT_TRUE(Cgroup::Open(*parent_, "sb1")) << "a handle must not remove what it does not own";
  ASSERT_TRUE(adopted->Remove());
  EXPECT_FALSE(*adopted);
  EXPECT_TRUE(adopted->Remove());  // idempotent
  EXPECT_EQ(Cgroup::Open(*parent_, "sb1").error().code(), Code::kNotFound);
  EXPECT_TRUE(Cgroup::Leftover(*parent_, "sb1").Remove());
}

TEST_F(CgroupTest, SameNameWorksAgainAfterKillAndRemove) {
  for (int i = 0; i < 3; ++i) {
    Cgroup cgroup = Make(kSmall);
    pid_t pid = Start(cgroup, [] {
      pause();
      return 0;
    });
    ASSERT_TRUE(cgroup.Remove(kPatience));
    Wait(pid);
  }
}

TEST_F(CgroupTest, LimitsChangeWhileRunning) {
  Cgroup cgroup = Make(kSmall);
  Limits limits = kSmall;
  for (int64_t megabytes : {256, 32, 128}) {
    limits.memory_bytes = megabytes << 20;
    Status set = cgroup.SetLimits(limits);
    ASSERT_TRUE(set) << set.error().message();
    Usage usage;
    ASSERT_TRUE(cgroup.Measure(usage));
    EXPECT_EQ(usage.memory_limit_bytes, megabytes << 20);
  }
  EXPECT_EQ(Wait(Start(cgroup, [] { return TouchMemory(100 << 20); })), 0);
  limits.pids = 0;
  EXPECT_EQ(cgroup.SetLimits(limits).error().code(), Code::kInvalidArgument);
}

TEST_F(CgroupTest, AttachMovesARunningProcess) {
  Cgroup cgroup = Make(kSmall);
  pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  ASSERT_TRUE(cgroup.Attach(pid));
  EXPECT_THAT(*cgroup.Processes(), testing::ElementsAre(pid));
  Usage usage;
  ASSERT_TRUE(cgroup.Measure(usage));
  EXPECT_EQ(usage.pids, 1);
  ASSERT_TRUE(cgroup.Remove(kPatience));
  Wait(pid);
}

TEST_F(CgroupTest, RemovesNestedCgroups) {
  Cgroup cgroup = Make(kSmall);
  std::string nested =
      fmt::format("{}/caisson-test{}/sb1/a", layout_.bases[kUnifiedTree], getpid());
  ASSERT_EQ(mkdir(nested.c_str(), 0755), 0);
  ASSERT_EQ(mkdir((nested + "/b").c_str(), 0755), 0);
  pid_t pid = Start(cgroup, [this] {
    counter_->store(1);
    pause();
    return 0;
  });
  ASSERT_TRUE(Reaches(1));
  ASSERT_TRUE(WriteKernelFile(nested + "/b/cgroup.procs", std::to_string(pid)));
  ASSERT_TRUE(cgroup.Remove(kPatience));
  Wait(pid);
}

TEST_F(CgroupTest, MeasuresCacheApartFromUse) {
  Cgroup cgroup = Make(kSmall);
  std::string path = fmt::format("/var/tmp/caisson-cgroup-test-{}", getpid());
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  pid_t pid = Start(cgroup, [&] {
    if (TouchMemory(16 << 20) != 0) return 1;
    FILE* file = fopen(path.c_str(), "w");
    std::string block(1 << 20, 'x');
    for (int i = 0; i < 24; ++i) fwrite(block.data(), 1, block.size(), file);
    fclose(file);
    counter_->store(1);
    char c;
    close(hold[1]);
    return static_cast<int>(read(hold[0], &c, 1));
  });
  ASSERT_TRUE(Reaches(1));
  Usage usage;
  ASSERT_TRUE(cgroup.Measure(usage));
  EXPECT_GE(usage.memory_used_bytes, 16 << 20);
  EXPECT_LT(usage.memory_used_bytes, 32 << 20);
  EXPECT_GE(usage.memory_cache_bytes, 20 << 20);
  close(hold[1]);
  EXPECT_EQ(Wait(pid), 0);
  unlink(path.c_str());
}

TEST_F(CgroupTest, CostOfCreateEnterRemove) {
  constexpr int kRounds = 100;
  std::vector<double> create, enter, remove;
  for (int i = 0; i < kRounds; ++i) {
    auto us = [](Clock::duration d) {
      return std::chrono::duration<double, std::micro>(d).count();
    };
    auto t0 = Clock::now();
    Cgroup cgroup = Make(kSmall, fmt::format("c{}", i));
    auto t1 = Clock::now();
    pid_t pid = Start(cgroup, [] { return 0; });
    EXPECT_EQ(Wait(pid), 0);
    auto t2 = Clock::now();
    ASSERT_TRUE(cgroup.Remove(kPatience));
    remove.push_back(us(Clock::now() - t2));
    create.push_back(us(t1 - t0));
    enter.push_back(counter_[1].load() / 1000.0);
  }
  auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
  };
  RecordProperty("create_us", fmt::format("{:.0f}", median(create)));
  RecordProperty("enter_us", fmt::format("{:.0f}", median(enter)));
  RecordProperty("remove_us", fmt::format("{:.0f}", median(remove)));
  printf("cgroup: create %.0f us, enter %.0f us, remove %.0f us (medians)\n", median(create),
         median(enter), median(remove));
  // No figure of speed, which benchmarks measure: only that nothing waits for a timeout.
  EXPECT_LT(median(create) + median(enter) + median(remove), 2'000'000);
}

}  // namespace
}  // namespace caisson::engine
