#include "base/time.h"

#include <ctime>

namespace caisson {
namespace {

// Reads exactly `digits` decimal digits from the front of `text`.
bool TakeNumber(std::string_view& text, size_t digits, int& out) {
  if (text.size() < digits) return false;
  out = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

int64_t TakeFraction(std::string_view& text) {
  int64_t nanos = 0, unit = 100'000'000;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    nanos += (text.front() - '0') * unit;
    unit /= 10;
    text.remove_prefix(1);
  }
  return nanos;
}

// Reads 'Z' or "+hh:mm" to the end of the text.
bool TakeOffset(std::string_view text, int& seconds) {
  seconds = 0;
  if (text == "Z" || text == "z") return true;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
  int sign = text.front() == '-' ? -1 : 1, hours = 0, minutes = 0;
  text.remove_prefix(1);
  if (!TakeNumber(text, 2, hours) || !TakeChar(text, ":") || !TakeNumber(text, 2, minutes) ||
      !text.empty() || hours > 23 || minutes > 59)
    return false;
  seconds = sign * (hours * 3600 + minutes * 60);
  return true;
}

}  // namespace

std::string FormatTime(Time time) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  auto nanos = (time - seconds).count();
  std::time_t t = seconds.time_since_epoch().count();
  std::tm tm{};
  gmtime_r(&t, &tm);
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", tm.tm_year + 1900,
                                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
  if (nanos != 0) {
    std::string fraction = fmt::format("{:09}", nanos);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text + "Z";
}

Result<Time> ParseTime(std::string_view text) {
  std::string_view rest = text;
  int year, month, day, hour, minute, second, offset;
  bool ok = TakeNumber(rest, 4, year) && TakeChar(rest, "-") && TakeNumber(rest, 2, month) &&
            TakeChar(rest, "-") && TakeNumber(rest, 2, day) && TakeChar(rest, "Tt ") &&
            TakeNumber(rest, 2, hour) && TakeChar(rest, ":") && TakeNumber(rest, 2, minute) &&
            TakeChar(rest, ":") && TakeNumber(rest, 2, second);
  int64_t nanos = ok && TakeChar(rest, ".") ? TakeFraction(rest) : 0;
  ok = ok && TakeOffset(rest, offset);
  std::chrono::year_month_day date{};
  if (ok) {
    date = std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(month)) /
           std::chrono::day(static_cast<unsigned>(day));
    // Nanoseconds since 1970 in 64 bits reach from 1678 to 2261.
    ok = date.ok() && hour < 24 && minute < 60 && second < 61 && year > 1678 && year < 2262;
  }
  if (!ok) return Fail(Code::kInvalidArgument, "'{}' is not an RFC 3339 time", text);
  return Time(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second - offset) +
         std::chrono::nanoseconds(nanos);
}

}  // namespace caisson
