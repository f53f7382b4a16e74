#include "engine/disk_guard.h"

#include <gtest/gtest.h>

namespace caisson::engine {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMB = 1 << 20;
const int64_t kSlow = DiskGuard::WritesAt(DiskGuard::Pace::kSlow);
constexpr int64_t kFloor = 500 * kMB, kEnough = 1000 * kMB;

class DiskGuardTest : public testing::Test {
 protected:
  // Time passes in which the disks of those that do not stand still grow by so many MB; as often as
  // it wants the guard looks. Who stands still afterwards.
  std::string Pass(std::chrono::milliseconds time, std::map<std::string, int64_t> mb_per_second) {
    for (auto end = now_ + time; now_ < end; now_ += 10ms) {
      for (auto [id, speed] : mb_per_second) {
        if (held_[id]) continue;
        int64_t grown = (slow_[id] ? std::min(speed * kMB, kSlow) : speed * kMB) / 100;
        taken_[id] += grown;
        free_ -= grown;
      }
      if (now_ >= guard_.next()) Look();
    }
    std::string names;
    for (const auto& [id, held] : held_)
      if (held) names += id;
    return names;
  }
  void Look() {
    if (!guard_.IsNear(free_, now_)) return;
    guard_.Update(free_, taken_, now_);
    for (const auto& [id, bytes] : taken_) {
      held_[id] = guard_.PaceOf(id) == DiskGuard::Pace::kHeld;
      slow_[id] = guard_.PaceOf(id) == DiskGuard::Pace::kSlow;
    }
  }

  DiskGuard guard_{kFloor, kEnough};
  int64_t free_ = 10'000 * kMB;
  DiskGuard::Clock::time_point now_ = DiskGuard::Clock::now();
  std::map<std::string, int64_t> taken_;
  std::map<std::string, bool> held_, slow_;
};

TEST_F(DiskGuardTest, TheGreediestStandStillAndTheDiskIsNeverFull) {
  EXPECT_EQ(Pass(4s, {{"a", 900}, {"b", 2}, {"c", 1500}}), "");
  EXPECT_TRUE(slow_["a"] && slow_["c"] && !slow_["b"]) << "twice the floor is near";
  EXPECT_EQ(Pass(20s, {{"a", 900}, {"b", 2}, {"c", 1500}}), "ac");
  EXPECT_GT(free_, kFloor - 50 * kMB);
  // What is left for b lasts for a while.
  EXPECT_EQ(Pass(60s, {{"b", 2}}), "ac");
  EXPECT_GT(free_, 0);
  // Somebody who begins now, slowly.
  EXPECT_EQ(Pass(10s, {{"b", 2}, {"d", 50}}), "acd");
  EXPECT_GT(free_, 0);
}

TEST_F(DiskGuardTest, EverybodyStandsStillBeforeItIsFull) {
  Pass(600s, {{"a", 20}, {"b", 10}, {"c", 1}});
  EXPECT_GT(free_, 0);
  EXPECT_TRUE(held_["a"] && held_["b"]);
}

TEST_F(DiskGuardTest, TheyGoOnOneAfterTheOther) {
  free_ = 600 * kMB;
  EXPECT_EQ(Pass(2s, {{"a", 400}, {"b", 100}}), "ab");
  Pass(3s, {});
  free_ = 900 * kMB;
  EXPECT_EQ(Pass(5s, {}), "ab") << "it is not enough yet";
  free_ = 1100 * kMB;
  EXPECT_EQ(Pass(500ms, {}), "a") << "the calmer one first";
  EXPECT_EQ(Pass(2s, {}), "");
  EXPECT_TRUE(slow_["a"] && slow_["b"]);
  // It is full again: they have learned nothing.
  EXPECT_EQ(Pass(30s, {{"a", 400}}), "a");
}

TEST_F(DiskGuardTest, WhenThereIsRoomAgainNobodyIsSlow) {
  free_ = 1500 * kMB;
  EXPECT_EQ(Pass(5s, {{"a", 200}}), "");
  EXPECT_TRUE(slow_["a"]);
  free_ = 50'000 * kMB;
  EXPECT_EQ(Pass(2s, {{"a", 200}}), "");
  EXPECT_FALSE(slow_["a"]);
}

TEST_F(DiskGuardTest, WhoOnlyRewritesWhatItHasIsNotGreedy) {
  free_ = 520 * kMB;
  EXPECT_EQ(Pass(10s, {{"a", 0}, {"b", 30}}), "b");
  EXPECT_EQ(Pass(10s, {{"a", 0}}), "b");
}

TEST_F(DiskGuardTest, FarAwayNobodyIsAsked) {
  free_ = 100'000 * kMB;
  EXPECT_FALSE(guard_.IsNear(free_, now_));
  EXPECT_EQ(guard_.next(), now_ + 1s);
  EXPECT_EQ(DiskGuard(0, kEnough).next(), DiskGuard::Clock::time_point::max());
}

}  // namespace
}  // namespace caisson::engine
