#include "engine/slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/file.h"

namespace caisson::engine {
namespace {

class SlotTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-slot-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    config_.data_dir = directory_;
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(directory_)); }

  std::unique_ptr<SlotTable> Open(const Config& config) {
    auto table = SlotTable::Open(config, directory_ + "/run");
    EXPECT_TRUE(table) << table.error().message();
    return table ? std::move(*table) : nullptr;
  }

  std::string directory_;
  Config config_;
};

TEST_F(SlotTest, GivesDisjointRangesAddressesAndNames) {
  auto table = Open(config_);
  Slot a = *table->Allocate("a"), b = *table->Allocate("b");
  EXPECT_GE(std::max(a.uid_base(), b.uid_base()) - std::min(a.uid_base(), b.uid_base()),
            kIdsPerSandbox);
  EXPECT_EQ(a.uid_base(), config_.uid_base + a.number() * 65536u);
  std::set<uint32_t> addresses = {a.host_address(), a.sandbox_address(), b.host_address(),
                                  b.sandbox_address()};
  EXPECT_EQ(addresses.size(), 4u);
  EXPECT_GT(*addresses.begin(), kDnsAddress);
  EXPECT_EQ(FormatIpv4(kDnsAddress), "198.18.0.1");
  EXPECT_NE(a.interface_name(), b.interface_name());
  EXPECT_LE(a.interface_name().size(), 15u);
  EXPECT_TRUE(a.interface_name().starts_with(InterfacePrefix(ServerTag(config_.data_dir))));
}

TEST_F(SlotTest, NobodyGetsTheDnsAddress) {
  config_.network_cidr = "198.18.0.0/30";
  auto table = Open(config_);
  Slot only = *table->Allocate("a");
  EXPECT_EQ(FormatIpv4(only.host_address()), "198.18.0.2");
  EXPECT_EQ(table->Allocate("b").error().code(), Code::kResourceExhausted);
  // The next wider network that contains it: its number lies beyond the uid space.
  uint32_t wider = ParseCidr("198.18.0.0/14")->base;
  EXPECT_GT((kDnsAddress - wider) / 2 + 1, (uint64_t{1} << 32) / kIdsPerSandbox);
}

TEST_F(SlotTest, LongestInterfaceNameFits) {
  // The uid space ends before the numbers have more than five digits.
  static_assert((uint64_t{1} << 32) / kIdsPerSandbox < 100'000);
  EXPECT_LE(InterfacePrefix("12345678").size() + 5, 15u);
}

TEST_F(SlotTest, ReleasedByDestructorAndOnlyOnce) {
  config_.max_slots = 3;  // numbers 1 and 2
  auto table = Open(config_);
  int number;
  {
    Slot a = *table->Allocate("a");
    number = a.number();
    Slot moved = std::move(a);
    EXPECT_FALSE(a);
    Slot b = *table->Allocate("b");
    EXPECT_NE(b.number(), number);
    auto none = table->Allocate("c");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Code::kResourceExhausted);
  }
  EXPECT_TRUE(table->List()->empty());
}

TEST_F(SlotTest, FreedNumberRestsBeforeItComesBack) {
  config_.max_slots = 101;
  auto table = Open(config_);
  std::set<int> seen;
  for (int i = 0; i < 100; ++i) seen.insert(table->Allocate("a")->number());
  EXPECT_EQ(seen.size(), 100u);
}

TEST_F(SlotTest, KeptSlotIsListedAndAdoptedByALaterProcess) {
  int number = Open(config_)->Allocate("sb1")->Keep();
  auto table = Open(config_);
  auto entries = *table->List();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].number, number);
  EXPECT_EQ(entries[0].sandbox_id, "sb1");
  auto wrong = table->Adopt(number, "sb2");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::kFailedPrecondition);
  {
    auto adopted = table->Adopt(number, "sb1");
    ASSERT_TRUE(adopted);
    EXPECT_EQ(adopted->number(), number);
  }
  EXPECT_FALSE(table->Adopt(number, "sb1"));
}

TEST_F(SlotTest, ServersShareTheTableButListOnlyTheirOwn) {
  Config other = config_;
  other.data_dir = "/";
  auto mine = Open(config_), theirs = Open(other);
  Slot a = *mine->Allocate("a"), b = *theirs->Allocate("b");
  EXPECT_NE(a.number(), b.number());
  EXPECT_EQ(mine->List()->size(), 1u);
  EXPECT_NE(a.interface_name().substr(0, 7), b.interface_name().substr(0, 7));
}

TEST_F(SlotTest, ServersMustAgreeOnUidBaseWhileSlotsAreTaken) {
  Config other = config_;
  other.uid_base += 65536;
  auto mine = Open(config_);
  {
    Slot a = *mine->Allocate("a");
    auto refused = SlotTable::Open(other, directory_ + "/run");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("must use the same"));
  }
  EXPECT_TRUE(SlotTable::Open(other, directory_ + "/run"));
}

TEST_F(SlotTest, SweepTakesEntriesOfEarlierBootsAndVanishedServers) {
  auto table = Open(config_);
  int kept = table->Allocate("live")->Keep();
  Config gone = config_;
  gone.data_dir = directory_ + "/gone";
  int vanished = Open(gone)->Allocate("old")->Keep();
  std::string slots = directory_ + "/run/slots/";
  ASSERT_EQ(symlink(("00000000:x:" + directory_).c_str(), (slots + "9000").c_str()), 0);
  EXPECT_EQ(*table->Sweep(), 2);
  EXPECT_NE(kept, vanished);
  EXPECT_TRUE(table->Adopt(kept, "live"));
}

TEST_F(SlotTest, SweepSparesARangeWithProcesses) {
  config_.data_dir = directory_ + "/gone";
  auto table = Open(config_);
  Slot slot = *table->Allocate("a");
  int ready[2], stop[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(stop), 0);
  pid_t pid = fork();
  if (pid == 0) {
    close(stop[1]);
    if (unshare(CLONE_NEWUSER) != 0) _exit(1);
    (void)!write(ready[1], "x", 1);
    char c;
    (void)!read(stop[0], &c, 1);
    _exit(0);
  }
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  ASSERT_TRUE(WriteKernelFile(fmt::format("/proc/{}/uid_map", pid),
                              fmt::format("0 {} 65536", slot.uid_base())));
  EXPECT_EQ(*table->Sweep(), 0);
  close(stop[1]);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(*table->Sweep(), 1);
  slot.Keep();
}

TEST_F(SlotTest, ConcurrentProcessesNeverHoldTheSameNumber) {
  constexpr int kProcesses = 6, kRounds = 2000, kHeld = 4;
  config_.max_slots = kProcesses * kHeld + 4;  // tight, so that they meet
  // One word per number: who holds it.
  auto* held = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(held, MAP_FAILED);
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t pid = fork();
    if (pid == 0) {
      auto table = SlotTable::Open(config_, directory_ + "/run");
      if (!table) _exit(2);
      std::vector<Slot> mine;
      for (int i = 0; i < kRounds; ++i) {
        if (mine.size() == kHeld) {
          held[mine.front().number()].store(0);
          mine.erase(mine.begin());
        }
        auto slot = (*table)->Allocate("x");
        if (!slot) _exit(3);
        if (held[slot->number()].exchange(p + 1) != 0) _exit(4);
        mine.push_back(std::move(*slot));
      }
      for (Slot& slot : mine) held[slot.number()].store(0);
      mine.clear();
      _exit(0);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_TRUE(Open(config_)->List()->empty());
  munmap(held, 4096);
}

TEST_F(SlotTest, RefusesSettingsThatMakeNoSense) {
  Config bad = config_;
  bad.network_cidr = "198.18.0.0";
  EXPECT_FALSE(SlotTable::Open(bad, directory_ + "/run"));
  bad = config_;
  bad.uid_base = 1000;
  EXPECT_FALSE(SlotTable::Open(bad, directory_ + "/run"));
  bad = config_;
  bad.network_cidr = "198.18.0.0/31";
  EXPECT_FALSE(SlotTable::Open(bad, directory_ + "/run"));
}

TEST(ParseCidrTest, ClearsHostBits) {
  auto cidr = ParseCidr("198.19.255.7/15");
  ASSERT_TRUE(cidr);
  EXPECT_EQ(FormatIpv4(cidr->base), "198.18.0.0");
  EXPECT_EQ(cidr->size(), 131072u);
  for (const char* bad : {"", "1.2.3/8", "1.2.3.4/33", "1.2.3.4/-1", "x/8", "::1/64"})
    EXPECT_FALSE(ParseCidr(bad)) << bad;
}

}  // namespace
}  // namespace caisson::engine
