#include "forge/token_pool.h"

#include <gtest/gtest.h>

namespace caisson::forge {
namespace {

using namespace std::chrono_literals;

const Time kNow = Time(std::chrono::seconds(1'800'000'000));

http::Headers Budgeted(int64_t limit, int64_t remaining, Time reset = kNow + 1h,
                       std::string resource = "core") {
  return {{"X-RateLimit-Limit", std::to_string(limit)},
          {"X-RateLimit-Remaining", std::to_string(remaining)},
          {"X-RateLimit-Reset", std::to_string(UnixSeconds(reset))},
          {"X-RateLimit-Resource", std::move(resource)}};
}

TEST(TokenPool, ReadsAList) {
  EXPECT_EQ(TokenPool("a, b ,,c").size(), 3u);
  EXPECT_TRUE(TokenPool("").empty());
  EXPECT_TRUE(TokenPool("line\nbreak").empty());
}

TEST(TokenPool, StaysUntilTheBudgetIsLowAndThenTurns) {
  TokenPool pool("a,b,c");
  TokenPool::Slot* first = pool.Pick(kNow);
  pool.Observe(*first, Budgeted(5000, 500), kNow);
  EXPECT_EQ(pool.Pick(kNow), first);
  pool.Observe(*first, Budgeted(5000, 499), kNow);
  TokenPool::Slot* second = pool.Pick(kNow);
  EXPECT_NE(second, first);
  // When all are low, the one with the most left.
  pool.Observe(*second, Budgeted(5000, 10), kNow);
  TokenPool::Slot* third = pool.Pick(kNow);
  pool.Observe(*third, Budgeted(5000, 5), kNow);
  EXPECT_EQ(pool.Pick(kNow), first);
  // A new window makes it good again.
  EXPECT_FALSE(pool.Pick(kNow + 2h) == nullptr);
}

TEST(TokenPool, WarnsOncePerWindow) {
  TokenPool pool("a");
  std::vector<int64_t> told;
  pool.low = [&](Budget budget) { told.push_back(budget.remaining); };
  TokenPool::Slot& slot = *pool.Pick(kNow);
  for (int64_t left : {600, 499, 498, 0}) pool.Observe(slot, Budgeted(5000, left), kNow);
  EXPECT_EQ(told, std::vector<int64_t>{499});
  pool.Observe(slot, Budgeted(5000, 4999, kNow + 2h), kNow + 1h);
  pool.Observe(slot, Budgeted(5000, 100, kNow + 2h), kNow + 1h);
  EXPECT_EQ(told, (std::vector<int64_t>{499, 100}));
}

TEST(TokenPool, OtherResourcesAreOtherBudgets) {
  TokenPool pool("a");
  TokenPool::Slot& slot = *pool.Pick(kNow);
  pool.Observe(slot, Budgeted(5000, 4000), kNow);
  pool.Observe(slot, Budgeted(30, 0, kNow + 1h, "search"), kNow);
  EXPECT_EQ(slot.budget.remaining, 4000);
  pool.Observe(slot, {{"Content-Type", "text/plain"}}, kNow);
  EXPECT_EQ(slot.budget.limit, 5000);
}

TEST(TokenPool, WhatIsBlockedOrRefusedIsNotUsed) {
  TokenPool pool("a,b");
  TokenPool::Slot* first = pool.Pick(kNow);
  first->blocked_until = kNow + 10s;
  TokenPool::Slot* second = pool.Pick(kNow);
  EXPECT_NE(second, first);
  second->blocked_until = kNow + 5s;
  EXPECT_EQ(pool.Pick(kNow), second);  // the one that is free first
  EXPECT_TRUE(pool.Refuse(*second));
  EXPECT_EQ(pool.Pick(kNow), first);
  EXPECT_FALSE(pool.Refuse(*first));  // no other is left, so both are tried again
  EXPECT_NE(pool.Pick(kNow + 1min), nullptr);
}

TEST(RateLimit, TellsWhen) {
  auto answer = [](unsigned status, http::Headers headers, std::string body = "") {
    http::Response response;
    response.status = status;
    response.headers = std::move(headers);
    response.body = std::move(body);
    return response;
  };
  EXPECT_EQ(RateLimitedUntil(answer(429, {{"Retry-After", "7"}}), kNow), kNow + 7s);
  EXPECT_EQ(RateLimitedUntil(answer(403, {{"Retry-After", "0"}}), kNow), kNow + 1s);
  EXPECT_EQ(RateLimitedUntil(answer(403, Budgeted(60, 0, kNow + 90s)), kNow), kNow + 91s);
  EXPECT_EQ(RateLimitedUntil(answer(403, {}, "You have exceeded a secondary rate limit."), kNow),
            kNow + 60s);
  EXPECT_EQ(RateLimitedUntil(answer(429, {}), kNow), kNow + 60s);
  EXPECT_EQ(RateLimitedUntil(answer(403, Budgeted(60, 5), "no permission"), kNow), std::nullopt);
  EXPECT_EQ(RateLimitedUntil(answer(200, {{"Retry-After", "7"}}), kNow), std::nullopt);
}

}  // namespace
}  // namespace caisson::forge
