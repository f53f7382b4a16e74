#include "sdk/retry.h"

#include <algorithm>

#include "base/log.h"

namespace caisson::sdk {

using std::chrono::milliseconds;

bool IsTransient(const Error& error) {
  switch (error.code()) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
    case Code::kInternal:
    case Code::kDataLoss:
      return true;
    default:
      return false;
  }
}

std::optional<milliseconds> NextWait(const RetryOptions& options, int attempt, const Error& error,
                                     const RetryHint& hint) {
  if (attempt >= options.attempts || !IsTransient(error)) return std::nullopt;
  if (hint.wait) return std::clamp(*hint.wait, milliseconds(0), options.max_wait);
  milliseconds wait = options.min_wait;
  for (int i = 1; i < attempt && wait < options.max_wait; ++i) wait *= 2;
  return std::min(wait, options.max_wait);
}

void LogRetry(const RetryOptions& options, std::string_view doing, int attempt, const Error& error,
              std::optional<milliseconds> wait) {
  if (!IsTransient(error)) return;  // an answer like any other
  std::string which = fmt::format("attempt {} of {}", attempt, options.attempts);
  if (wait)
    LogWarn("a call failed and is tried again", {{"call", doing},
                                                 {"attempt", which},
                                                 {"wait_ms", wait->count()},
                                                 {"error", error.message()}});
  else
    LogWarn("a call failed", {{"call", doing}, {"attempt", which}, {"error", error.message()}});
}

Status CircuitBreaker::Enter(std::string_view what) {
  if (failures_ < limit_) return {};
  auto left = opened_ + open_for_ - clock_();
  if (left <= milliseconds(0) && !probing_) {
    probing_ = true;
    return {};
  }
  auto seconds = std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(left).count());
  return Fail(Code::kUnavailable,
              "circuit_open: {} failed {} times in a row; the next attempt is made in {} s", what,
              failures_, seconds);
}

void CircuitBreaker::Leave(const Status& outcome) {
  probing_ = false;
  bool outage = !outcome && outcome.error().code() != Code::kResourceExhausted &&
                IsTransient(outcome.error());
  if (!outage) {
    failures_ = 0;
    return;
  }
  if (++failures_ >= limit_) opened_ = clock_();
}

}  // namespace caisson::sdk
