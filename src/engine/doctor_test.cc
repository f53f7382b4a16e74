// The doctor on the machine of the test, in a network namespace of its own: what it says fits what
// the other tests of the engine find, and nothing stays behind.
#include "engine/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "engine/cgroup.h"
#include "engine/network.h"
#include "engine/nft.h"

namespace caisson::engine {
namespace {

using Level = Finding::Level;

std::string Describe(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += fmt::format("{} {}: {} ({})\n", static_cast<int>(f.level), f.topic, f.message, f.fix);
  return text;
}

// Everything of the machine the doctor touches.
std::string Census(const std::string& data_dir) {
  std::set<std::string> lines;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir))
    lines.insert(entry.path().string());
  auto layout = *CgroupLayout::Detect();
  for (const std::string& base : layout.bases)
    if (!base.empty())
      for (const auto& entry : std::filesystem::directory_iterator(base))
        if (entry.path().filename().string().find("doctor") != std::string::npos)
          lines.insert(entry.path().string());
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block"))
    if (auto file = ReadFile(entry.path().string() + "/loop/backing_file");
        file && file->find("doctor") != std::string::npos)
      lines.insert(*file);
  lines.insert(*ReadFile("/proc/self/mountinfo"));
  lines.insert(*ReadNft({"list", "ruleset"}));
  lines.insert(*ReadFile("/proc/net/dev_mcast"));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// The kernel takes loop devices and interfaces away a little after it said yes.
std::string AwaitCensus(const std::string& data_dir, const std::string& wanted) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string now = Census(data_dir);
  for (; now != wanted && std::chrono::steady_clock::now() < deadline; now = Census(data_dir))
    usleep(20'000);
  return now;
}

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    ASSERT_TRUE(ConfigureLoopback());  // CRIU tries the kernel's TCP there
    char path[] = "/var/tmp/caisson-doctor-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    config_.data_dir = path;
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(config_.data_dir)); }

  Config config_;
};

const Finding* Find(const std::vector<Finding>& findings, std::string_view topic) {
  for (const Finding& f : findings)
    if (f.topic == topic) return &f;
  return nullptr;
}

TEST_F(DoctorTest, FindsThisMachineAbleAndLeavesNothing) {
  std::string before = Census(config_.data_dir);
  auto findings = Examine(config_);
  EXPECT_EQ(AwaitCensus(config_.data_dir, before), before);
  for (const char* topic : {"kernel", "privileges", "namespaces", "seccomp", "cgroups",
                            "disk limits", "root file system", "network", "pausing"}) {
    const Finding* found = Find(findings, topic);
    ASSERT_NE(found, nullptr) << topic << "\n" << Describe(findings);
    EXPECT_EQ(found->level, Level::kOk) << topic << ": " << found->message;
  }
  for (const Finding& f : findings) {
    EXPECT_FALSE(f.message.empty()) << f.topic;
    EXPECT_EQ(f.fix.empty(), f.level == Level::kOk) << f.topic << ": " << f.message;
  }
}

TEST_F(DoctorTest, NamesTheFirewallThatDropsForwardedTraffic) {
  ASSERT_TRUE(
      RunNft("table ip filter {\n chain FORWARD {\n type filter hook forward priority "
             "filter; policy drop;\n }\n}\n"));
  auto findings = Examine(config_);
  const Finding* found = Find(findings, "firewall");
  ASSERT_NE(found, nullptr) << Describe(findings);
  EXPECT_EQ(found->level, Level::kWarning);
  EXPECT_THAT(found->message, testing::HasSubstr("table ip filter"));
}

TEST_F(DoctorTest, SaysWhatIsMissing) {
  config_.max_sandboxes = 1'000'000'000;
  config_.sandbox_memory_mb = int64_t{1} << 30;
  config_.sandbox_disk_mb = int64_t{1} << 40;
  config_.network = "none";
  auto findings = Examine(config_);
  for (const char* topic : {"open files", "memory", "disk space", "base template"}) {
    const Finding* found = Find(findings, topic);
    ASSERT_NE(found, nullptr) << topic;
    EXPECT_EQ(found->level, Level::kWarning) << found->message;
  }
  EXPECT_EQ(Find(findings, "dns"), nullptr);
  ASSERT_EQ(mkdir((config_.data_dir + "/templates").c_str(), 0755), 0);
  ASSERT_EQ(mkdir((config_.data_dir + "/templates/base").c_str(), 0755), 0);
  ASSERT_TRUE(WriteFileAtomic(config_.data_dir + "/templates/base/template.json", "{}", 0644));
  EXPECT_EQ(Find(Examine(config_), "base template")->level, Level::kOk);
}

TEST_F(DoctorTest, NamesWhatBecomesOfPausedMemory) {
  config_.network = "none";
  auto findings = Examine(config_);
  EXPECT_THAT(Find(findings, "pausing")->message,
              testing::AllOf(testing::HasSubstr("goes to disk"), testing::HasSubstr("CRIU ")));
  config_.criu = config_.data_dir;
  findings = Examine(config_);
  EXPECT_EQ(Find(findings, "pausing")->level, Level::kWarning);
  EXPECT_THAT(Find(findings, "pausing")->message, testing::HasSubstr("frozen in RAM"));
  config_.save_memory = false;
  findings = Examine(config_);
  EXPECT_EQ(Find(findings, "pausing")->level, Level::kOk);
  EXPECT_THAT(Find(findings, "pausing")->message, testing::HasSubstr("save_memory"));
}

TEST_F(DoctorTest, WithoutRootItSaysSo) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  pid_t pid = fork();
  if (pid == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(1);
    auto findings = Examine(config_);
    const Finding* found = Find(findings, "privileges");
    std::string text = found && found->level == Level::kProblem ? found->fix : "none";
    _exit(write(fds[1], text.data(), text.size()) < 0);
  }
  close(fds[1]);
  char buffer[256];
  ssize_t n = read(fds[0], buffer, sizeof buffer);
  close(fds[0]);
  waitpid(pid, nullptr, 0);
  EXPECT_THAT(std::string(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0))),
              testing::HasSubstr("sudo"));
}

}  // namespace
}  // namespace caisson::engine
