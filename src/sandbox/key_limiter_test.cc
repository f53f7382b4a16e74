#include "sandbox/key_limiter.h"

#include <gtest/gtest.h>

namespace caisson::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class KeyLimiterTest : public ::testing::Test {
 protected:
  KeyLimiter Make() {
    return KeyLimiter(config_, [this] { return now_; });
  }
  // How many of `count` requests at once are let through.
  static int Burst(KeyLimiter& limiter, const std::string& key, int count) {
    int passed = 0;
    for (int i = 0; i < count; ++i) passed += limiter.TakeRequest(key).has_value();
    return passed;
  }

  Config config_;
  KeyLimiter::Clock::time_point now_{std::chrono::hours(1)};
};

TEST(TokenBucket, FillsAtItsRateUpToItsBurst) {
  TokenBucket::Clock::time_point now{std::chrono::hours(1)};
  TokenBucket bucket(2, 3, now);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.Take(now), seconds(0));
  EXPECT_EQ(bucket.Take(now), milliseconds(500));
  EXPECT_EQ(bucket.Wait(now + milliseconds(200)), milliseconds(300));
  now += milliseconds(500);
  EXPECT_EQ(bucket.Take(now), seconds(0));
  EXPECT_EQ(bucket.Take(now), milliseconds(500));
  now += seconds(100);  // never more than the burst
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.Take(now), seconds(0));
  EXPECT_GT(bucket.Take(now), seconds(0));
}

TEST(TokenBucket, AClockThatStandsStillGivesNothing) {
  TokenBucket::Clock::time_point now{std::chrono::hours(1)};
  TokenBucket bucket(1, 1, now);
  EXPECT_EQ(bucket.Take(now), seconds(0));
  EXPECT_EQ(bucket.Take(now), seconds(1));
  EXPECT_EQ(bucket.Take(now - seconds(10)), seconds(1));
}

TEST_F(KeyLimiterTest, ZeroIsUnlimited) {
  auto limiter = Make();
  EXPECT_EQ(Burst(limiter, "a", 1000), 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limiter.TakeCreate("a"));
  EXPECT_EQ(limiter.MaxSandboxes("a"), 0);
}

TEST_F(KeyLimiterTest, AKeyHasItsOwnLongestTimeout) {
  config_.max_timeout_s = 100;
  auto limiter = Make();
  limiter.Set("brief", {.max_timeout_s = 7});
  limiter.Set("patient", {.max_timeout_s = 0});
  EXPECT_EQ(limiter.LongestTimeout("brief"), seconds(7));
  EXPECT_EQ(limiter.LongestTimeout("other"), seconds(100));
  EXPECT_GT(limiter.LongestTimeout("patient"), std::chrono::years(10));
  EXPECT_EQ(limiter.OwnLimits("brief").max_timeout_s, 7);
  EXPECT_EQ(limiter.OwnLimits("other"), store::KeyLimits{});
}

TEST_F(KeyLimiterTest, EachKeyHasItsOwnRate) {
  config_.rate_limit = 5;
  auto limiter = Make();
  EXPECT_EQ(Burst(limiter, "a", 100), 10);  // twice the rate at once
  EXPECT_EQ(Burst(limiter, "b", 100), 10);
  now_ += seconds(1);
  EXPECT_EQ(Burst(limiter, "a", 100), 5);
  auto refused = limiter.TakeRequest("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_NE(refused.error().message().find("5 requests per second"), std::string::npos);
  EXPECT_EQ(limiter.RetryAfter("a"), seconds(1));
}

TEST_F(KeyLimiterTest, CreatesPerMinuteTellWhenToComeBack) {
  config_.create_rate_limit = 2;
  auto limiter = Make();
  EXPECT_TRUE(limiter.TakeCreate("a"));
  EXPECT_TRUE(limiter.TakeCreate("a"));
  EXPECT_FALSE(limiter.TakeCreate("a"));
  EXPECT_EQ(limiter.RetryAfter("a"), seconds(30));
  now_ += seconds(29);
  EXPECT_FALSE(limiter.TakeCreate("a"));
  EXPECT_EQ(limiter.RetryAfter("a"), seconds(1));
  now_ += seconds(1);
  EXPECT_TRUE(limiter.TakeCreate("a"));
}

TEST_F(KeyLimiterTest, AKeysOwnLimitsWin) {
  config_.rate_limit = 100;
  config_.rate_burst = 500;
  config_.max_sandboxes_per_key = 3;
  auto limiter = Make();
  limiter.Set("small", {.rate_limit = 1, .create_rate_limit = 1, .max_sandboxes = 1});
  limiter.Set("free", {.rate_limit = 0, .max_sandboxes = 0});
  limiter.Set("wide", {.rate_burst = 2});
  EXPECT_EQ(Burst(limiter, "small", 100), 2);
  EXPECT_EQ(Burst(limiter, "free", 1000), 1000);
  EXPECT_EQ(Burst(limiter, "wide", 100), 2);
  EXPECT_EQ(Burst(limiter, "other", 1000), 500);
  EXPECT_EQ(limiter.MaxSandboxes("small"), 1);
  EXPECT_EQ(limiter.MaxSandboxes("free"), 0);
  EXPECT_EQ(limiter.MaxSandboxes("other"), 3);
}

}  // namespace
}  // namespace caisson::sandbox
