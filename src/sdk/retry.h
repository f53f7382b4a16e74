// How often and when a call is tried again, and when nobody should call at all.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/async.h"

namespace caisson::sdk {

struct RetryOptions {
  int attempts = 3;
  std::chrono::milliseconds min_wait{1'000};  // before the second attempt; it doubles
  std::chrono::milliseconds max_wait{10'000};
  // Replaced by tests.
  std::function<Task<void>(std::chrono::milliseconds)> sleep = SleepFor;
};

// Overloads, outages, timeouts and resets may pass; what was refused for a reason stays refused.
bool IsTransient(const Error& error);

// What an attempt knows about the next one.
struct RetryHint {
  std::optional<std::chrono::milliseconds> wait;  // the server said when (Retry-After)
};

// Whether, and after how long, another attempt follows on attempt number `attempt`.
std::optional<std::chrono::milliseconds> NextWait(const RetryOptions& options, int attempt,
                                                  const Error& error, const RetryHint& hint);
// Says what may pass in the log: "attempt 1 of 3".
void LogRetry(const RetryOptions& options, std::string_view doing, int attempt, const Error& error,
              std::optional<std::chrono::milliseconds> wait);

// `attempt` is called until it succeeds, fails for good, or was called often enough.
template <class T>
Task<Result<T>> Retry(RetryOptions options, std::string doing,
                      std::function<Task<Result<T>>(RetryHint&)> attempt) {
  for (int number = 1;; ++number) {
    RetryHint hint;
    Result<T> result = co_await attempt(hint);
    if (result) co_return result;
    auto wait = NextWait(options, number, result.error(), hint);
    LogRetry(options, doing, number, result.error(), wait);
    if (!wait) co_return result;
    co_await options.sleep(*wait);
  }
}

// After `failures` outages in a row calls fail at once for `open_for`; then one is let through, and
// its outcome decides.
class CircuitBreaker {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  CircuitBreaker(int failures, std::chrono::milliseconds open_for,
                 Clock clock = std::chrono::steady_clock::now)
      : limit_(failures), open_for_(open_for), clock_(std::move(clock)) {}

  // kUnavailable with "circuit_open: ..." while it is open.
  Status Enter(std::string_view what);
  // How a call that was let in ended. Only outages count: a server that refuses is alive.
  void Leave(const Status& outcome);

 private:
  int limit_;
  std::chrono::milliseconds open_for_;
  Clock clock_;
  int failures_ = 0;
  bool probing_ = false;
  std::chrono::steady_clock::time_point opened_{};
};

}  // namespace caisson::sdk
