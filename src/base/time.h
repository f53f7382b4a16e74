// Wall-clock time with nanoseconds, and its RFC 3339 text.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson {

using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

inline Time Now() { return std::chrono::system_clock::now(); }

// "2026-11-15T09:04:16.123456789Z"; trailing zeros of the fraction are cut, none when it is zero.
std::string FormatTime(Time time);
// RFC 3339 with 'Z' or an offset, up to nine fractional digits (more are cut).
Result<Time> ParseTime(std::string_view text);

inline int64_t UnixSeconds(Time t) {
  return std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
}
inline int64_t UnixNanos(Time t) { return t.time_since_epoch().count(); }
inline Time FromUnixNanos(int64_t n) { return Time(std::chrono::nanoseconds(n)); }

}  // namespace caisson
