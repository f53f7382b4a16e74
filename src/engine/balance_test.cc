#include "engine/balance.h"

#include <gtest/gtest.h>

namespace caisson::engine {
namespace {

using namespace std::chrono_literals;

class BalanceTest : public testing::Test {
 protected:
  // A second passes in which each of these uses so many CPUs; who stands behind afterwards.
  std::string Second(std::map<std::string, double> cpus) {
    std::map<std::string, int64_t> times;
    for (auto [id, used] : cpus) times[id] = used_[id] += static_cast<int64_t>(used * 1e9);
    std::erase_if(used_, [&](const auto& item) { return !cpus.contains(item.first); });
    std::erase_if(behind_, [&](const auto& item) { return !cpus.contains(item.first); });
    auto share = [this](const Balance::Rates& rates) { return CpuShare(rates, 2, waits_known_); };
    for (const auto& change : balance_.Update(times, now_ += 1s, share)) {
      EXPECT_NE(behind_[change.id], change.busy) << "told twice: " << change.id;
      behind_[change.id] = change.busy;
    }
    std::string names;
    for (const auto& [id, behind] : behind_)
      if (behind) names += id;
    return names;
  }

  Balance balance_{2s};
  bool waits_known_ = false;
  Balance::Clock::time_point now_{100s};
  std::map<std::string, int64_t> used_;
  std::map<std::string, bool> behind_;
};

TEST_F(BalanceTest, WhoComputesForLongStandsBehindUntilItRests) {
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "");  // first seen
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "");
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "a");
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "a");
  EXPECT_EQ(Second({{"a", 0.2}, {"b", 0.1}}), "");
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "");
  EXPECT_EQ(Second({{"a", 1}, {"b", 0.1}}), "a");
}

TEST_F(BalanceTest, TheMoreThereAreTheSmallerTheShare) {
  std::map<std::string, double> crowd{{"x", 0.06}};
  for (char name = 'a'; name < 'j'; ++name) crowd[std::string(1, name)] = 0.2;
  Second(crowd);
  Second(crowd);
  EXPECT_EQ(Second(crowd), "abcdefghi");
  // Alone, the same use is nothing special.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Second({{"a", 0.2}}), "");
}

TEST_F(BalanceTest, WithWaitsItIsWhoWantsACpuAllTheTime) {
  waits_known_ = true;
  std::map<std::string, double> crowd{{"x", 0.6}};  // one command after the other
  for (char name = 'a'; name < 'd'; ++name) crowd[std::string(1, name)] = 0.3 + 0.7;
  Second(crowd);
  Second(crowd);
  EXPECT_EQ(Second(crowd), "abc");
}

TEST_F(BalanceTest, WhenNobodyWorksAllAreLetGo) {
  for (int i = 0; i < 3; ++i) Second({{"a", 1}, {"b", 0.1}});
  auto changes = balance_.Rest();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].id, "a");
  EXPECT_FALSE(changes[0].busy);
  EXPECT_TRUE(balance_.Rest().empty());
}

TEST_F(BalanceTest, AnIdOfAnotherSandboxBeginsAnew) {
  for (int i = 0; i < 3; ++i) Second({{"a", 1}});
  EXPECT_EQ(Second({{"b", 1}}), "");
  EXPECT_EQ(Second({{"a", 1}, {"b", 1}}), "");
  EXPECT_EQ(Second({{"a", 1}, {"b", 1}}), "b");
}

}  // namespace
}  // namespace caisson::engine
