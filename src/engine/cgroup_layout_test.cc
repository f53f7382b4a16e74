// The cgroup code against copies of the kernel's file trees: what is found, and exactly what is
// written where. (cgroup_test.cc does it for real, on the layout of the machine.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "engine/cgroup.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Limits kLimits{.cpus = 3, .memory_bytes = 256 << 20, .pids = 100};

class CgroupTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-cgroup-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    ASSERT_EQ(chmod(path, 0755), 0);
    root_ = path;
    Put("../" + fs::path(root_).filename().string() + ".self", "0::/\n");
    self_ = root_ + ".self";
  }
  void TearDown() override {
    fs::remove_all(root_);
    fs::remove(self_);
  }

  void Put(const std::string& name, std::string_view content) {
    fs::create_directories(fs::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << content;
  }
  std::string Get(const std::string& name) {
    auto text = ReadFile(root_ + "/" + name);
    return text ? std::string(Trim(*text)) : "(missing)";
  }
  // A v2 tree as the kernel shows it at its root, or (`inner`) somewhere below it.
  void MakeV2(const std::string& directory = "", bool inner = false) {
    Put(directory + "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
    Put(directory + "cgroup.subtree_control", "memory\n");
    Put(directory + "cgroup.procs", "11\n12\n");
    if (inner) Put(directory + "cgroup.type", "domain\n");
  }
  // What a new cgroup shows by itself; here it must be put before the code looks.
  void MakeParent(const std::string& directory, bool swap) {
    Put(directory + "/cgroup.subtree_control", "\n");
    if (swap) Put(directory + "/memory.swap.max", "max\n");
  }
  void MakeHybrid() {
    for (const char* tree : {"memory", "cpu", "pids", "unified"})
      Put(std::string(tree) + "/cgroup.procs", "11\n");
    Put("unified/cgroup.controllers", "hugetlb\n");
  }
  CgroupLayout Detect() {
    auto layout = CgroupLayout::Detect(root_, self_);
    EXPECT_TRUE(layout) << layout.error().message();
    if (!layout) return {};
    layout->plain_files = true;
    return *layout;
  }
  std::unique_ptr<CgroupParent> OpenParent() {
    auto parent = CgroupParent::Open(Detect(), "1a2b3c4d");
    EXPECT_TRUE(parent) << parent.error().message();
    return parent ? std::move(*parent) : nullptr;
  }

  std::string root_, self_;
};

TEST_F(CgroupTreeTest, V2AtTheRootEnablesControllersOnTwoLevels) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  EXPECT_EQ(parent->kind(), CgroupLayout::Kind::kV2);
  EXPECT_EQ(Get("cgroup.subtree_control"), "+cpu +memory +pids");
  EXPECT_EQ(Get("caisson-1a2b3c4d/cgroup.subtree_control"), "+cpu +memory +pids");
  // The root of all may keep its processes.
  EXPECT_FALSE(fs::exists(root_ + "/caisson-server"));
}

TEST_F(CgroupTreeTest, V2LeavesEnabledControllersAlone) {
  MakeV2();
  Put("cgroup.subtree_control", "cpuset cpu io memory pids\n");
  MakeParent("caisson-1a2b3c4d", true);
  OpenParent();
  EXPECT_EQ(Get("cgroup.subtree_control"), "cpuset cpu io memory pids");
}

TEST_F(CgroupTreeTest, V2MovesProcessesOutOfANonRootCgroup) {
  MakeV2("", true);
  MakeParent("caisson-1a2b3c4d", true);
  OpenParent();
  // The copy keeps what was written last.
  EXPECT_EQ(Get("caisson-server/cgroup.procs"), "12");
  EXPECT_EQ(Get("cgroup.subtree_control"), "+cpu +memory +pids");
}

TEST_F(CgroupTreeTest, V2WritesTheLimits) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  auto cgroup = Cgroup::Create(*parent, "sb1", kLimits);
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  std::string directory = "caisson-1a2b3c4d/sb1/";
  EXPECT_EQ(Get(directory + "memory.max"), "268435456");
  EXPECT_EQ(Get(directory + "memory.swap.max"), "0");
  EXPECT_EQ(Get(directory + "pids.max"), "100");
  EXPECT_EQ(Get(directory + "cpu.max"), "300000 100000");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ + "/" + directory), {}), 4);

  Limits more = kLimits;
  more.memory_bytes *= 2;
  ASSERT_TRUE(cgroup->SetLimits(more));
  EXPECT_EQ(Get(directory + "memory.max"), "536870912");

  auto entry = cgroup->PrepareEntry();
  ASSERT_TRUE(entry);
  EXPECT_TRUE(entry->v2);
  EXPECT_TRUE(entry->v1.empty());
  EXPECT_TRUE(entry->EnterV1());

  ASSERT_TRUE(cgroup->Attach(4711));
  EXPECT_EQ(Get(directory + "cgroup.procs"), "4711");
  ASSERT_TRUE(cgroup->Kill());
  EXPECT_EQ(Get(directory + "cgroup.kill"), "1");
  cgroup->Keep();
}

TEST_F(CgroupTreeTest, V2WithoutSwapAccountingWritesNoSwapLimit) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", false);
  auto parent = OpenParent();
  auto cgroup = Cgroup::Create(*parent, "sb1", kLimits);
  ASSERT_TRUE(cgroup);
  EXPECT_FALSE(fs::exists(root_ + "/caisson-1a2b3c4d/sb1/memory.swap.max"));
  cgroup->Keep();
}

TEST_F(CgroupTreeTest, V2Measures) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  std::string directory = "caisson-1a2b3c4d/sb1/";
  Put(directory + "cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n");
  Put(directory + "memory.current", "1000000\n");
  Put(directory + "memory.max", "268435456\n");
  Put(directory + "memory.stat",
      "anon 500000\nfile 400000\ninactive_file 300000\nactive_file 100\n");
  Put(directory + "memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n");
  Put(directory + "pids.current", "7\n");
  Put(directory + "pids.events", "max 3\n");
  auto cgroup = Cgroup::Open(*parent, "sb1");
  ASSERT_TRUE(cgroup);
  Usage usage;
  usage.disk_used_bytes = 5;
  Status measured = cgroup->Measure(usage);
  ASSERT_TRUE(measured) << measured.error().message();
  EXPECT_EQ(usage.cpu_ns, 1'500'000);
  EXPECT_EQ(cgroup->CpuWait(), std::nullopt);  // a kernel that does not count it
  Put(directory + "cpu.pressure",
      "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500\nfull avg10=0.00 avg60=0.00 total=7\n");
  EXPECT_EQ(cgroup->CpuWait(), 2'500'000);
  Put("caisson-1a2b3c4d/cpu.stat", "usage_usec 9000\n");
  EXPECT_EQ(parent->CpuTime().value(), 9'000'000);
  EXPECT_EQ(usage.memory_cache_bytes, 300'100);
  EXPECT_EQ(usage.memory_used_bytes, 699'900);
  EXPECT_EQ(usage.memory_limit_bytes, 268435456);
  EXPECT_EQ(usage.oom_kills, 2);
  EXPECT_EQ(usage.pids, 7);
  EXPECT_EQ(usage.disk_used_bytes, 5);
  EXPECT_THAT(*parent->List(), testing::ElementsAre("sb1"));
  cgroup->Keep();
}

TEST_F(CgroupTreeTest, V2LimitsWritesPerSandbox) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  Put("caisson-1a2b3c4d/sb1/io.max", "");
  auto cgroup = Cgroup::Open(*parent, "sb1");
  ASSERT_TRUE(cgroup->LimitWrites(3, 50 << 20));
  EXPECT_EQ(Get("caisson-1a2b3c4d/sb1/io.max"), "7:3 wbps=52428800");
  ASSERT_TRUE(cgroup->LimitWrites(3, 0));
  EXPECT_EQ(Get("caisson-1a2b3c4d/sb1/io.max"), "7:3 wbps=max");
}

TEST_F(CgroupTreeTest, HybridLimitsWritesPerDevice) {
  const std::string rules = "blkio/blkio.throttle.write_bps_device";
  MakeHybrid();
  Put(rules, "7:31 1000\n");
  auto parent = OpenParent();
  auto cgroup = Cgroup::Leftover(*parent, "sb1");
  ASSERT_TRUE(cgroup.LimitWrites(3, 0));  // has no rule
  EXPECT_EQ(Get(rules), "7:31 1000");
  ASSERT_TRUE(cgroup.LimitWrites(3, 50 << 20));
  EXPECT_EQ(Get(rules), "7:3 52428800");
  ASSERT_TRUE(cgroup.LimitWrites(3, 0));
  EXPECT_EQ(Get(rules), "7:3 0");
}

TEST_F(CgroupTreeTest, WithoutATreeForDisksNothingIsLimited) {
  MakeHybrid();
  auto parent = OpenParent();
  auto cgroup = Cgroup::Leftover(*parent, "sb1");
  EXPECT_EQ(cgroup.LimitWrites(3, 1).error().code(), Code::kUnimplemented);
}

TEST_F(CgroupTreeTest, FreezeWaitsForTheKernelAndThawsAfterItsDeadline) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  Put("caisson-1a2b3c4d/sb1/cgroup.events", "populated 1\nfrozen 1\n");
  auto cgroup = Cgroup::Open(*parent, "sb1");
  ASSERT_TRUE(cgroup->Freeze(std::chrono::milliseconds(50)));
  EXPECT_EQ(Get("caisson-1a2b3c4d/sb1/cgroup.freeze"), "1");
  EXPECT_TRUE(*cgroup->frozen());
  Put("caisson-1a2b3c4d/sb1/cgroup.events", "populated 1\nfrozen 0\n");
  Status late = cgroup->Freeze(std::chrono::milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(*cgroup->frozen());
  EXPECT_EQ(cgroup->WaitEmpty(std::chrono::milliseconds(20)).error().code(),
            Code::kDeadlineExceeded);
  cgroup->Keep();
}

TEST_F(CgroupTreeTest, V2SaysWhichControllersAreMissing) {
  MakeV2();
  Put("cgroup.controllers", "cpu io\n");
  auto layout = CgroupLayout::Detect(root_, self_);
  ASSERT_FALSE(layout);
  EXPECT_THAT(layout.error().message(), HasSubstr("memory, pids are not available"));
}

// The base Detect() finds for a user that may not write to the root of the tree.
std::string BaseWithoutRootRights(const std::string& root, const std::string& self,
                                  const std::string& own) {
  EXPECT_EQ(chmod(root.c_str(), 0555), 0);
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0) EXPECT_EQ(chown(own.c_str(), kNobody, kNobody), 0);
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  pid_t pid = fork();
  if (pid == 0) {
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
    auto layout = CgroupLayout::Detect(root, self);
    std::string text = layout ? layout->bases[kUnifiedTree] : layout.error().message();
    _exit(write(fds[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(fds[1]);
  char buffer[512];
  ssize_t n = read(fds[0], buffer, sizeof buffer);
  close(fds[0]);
  waitpid(pid, nullptr, 0);
  chmod(root.c_str(), 0755);
  return std::string(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0)));
}

TEST_F(CgroupTreeTest, V2GoesBelowTheOwnCgroupWhereTheRootIsNotWritable) {
  MakeV2();
  MakeV2("system.slice/caisson.service/", true);
  std::ofstream(self_) << "0::/system.slice/caisson.service\n";
  std::string own = root_ + "/system.slice/caisson.service";
  EXPECT_EQ(BaseWithoutRootRights(root_, self_, own), own);
  // Started again from within the leaf.
  std::ofstream(self_) << "0::/system.slice/caisson.service/caisson-server\n";
  EXPECT_EQ(BaseWithoutRootRights(root_, self_, own), own);
  std::ofstream(self_) << "0::/\n";
  EXPECT_THAT(BaseWithoutRootRights(root_, self_, own), HasSubstr("is not writable"));
}

TEST_F(CgroupTreeTest, HybridWritesEachLimitToItsTree) {
  MakeHybrid();
  Put("memory/caisson-1a2b3c4d/memory.memsw.limit_in_bytes", "max\n");
  auto parent = OpenParent();
  EXPECT_EQ(parent->kind(), CgroupLayout::Kind::kHybrid);
  auto cgroup = Cgroup::Create(*parent, "sb1", kLimits);
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  EXPECT_EQ(Get("memory/caisson-1a2b3c4d/sb1/memory.limit_in_bytes"), "268435456");
  EXPECT_EQ(Get("memory/caisson-1a2b3c4d/sb1/memory.memsw.limit_in_bytes"), "268435456");
  EXPECT_EQ(Get("pids/caisson-1a2b3c4d/sb1/pids.max"), "100");
  EXPECT_EQ(Get("cpu/caisson-1a2b3c4d/sb1/cpu.cfs_quota_us"), "300000");
  EXPECT_TRUE(fs::is_empty(root_ + "/unified/caisson-1a2b3c4d/sb1"));
  ASSERT_TRUE(cgroup->Kill());
  EXPECT_EQ(Get("unified/caisson-1a2b3c4d/sb1/cgroup.kill"), "1");
  cgroup->Keep();
}

TEST_F(CgroupTreeTest, SaysWhichTreeIsMissing) {
  MakeHybrid();
  fs::remove_all(root_ + "/pids");
  auto layout = CgroupLayout::Detect(root_, self_);
  ASSERT_FALSE(layout);
  EXPECT_THAT(layout.error().message(), HasSubstr("there is no cgroup tree " + root_ + "/pids"));
}

TEST_F(CgroupTreeTest, RefusesIdsThatAreNotNames) {
  MakeV2();
  MakeParent("caisson-1a2b3c4d", true);
  auto parent = OpenParent();
  for (std::string id : {"", "..", "a/b", "A", "a b", "x\n"})
    EXPECT_EQ(Cgroup::Create(*parent, id, kLimits).error().code(), Code::kInvalidArgument) << id;
  EXPECT_EQ(Cgroup::Open(*parent, "nosuch").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::engine
