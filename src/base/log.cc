#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json/serialize.hpp>
#include <deque>
#include <mutex>
#include <string>

#include "base/log_ring.h"
#include "base/time.h"

namespace caisson {
namespace {

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string program = "caisson";
};
LogConfig g_config;

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warn", "error"};

std::string JsonLine(LogLevel level, std::string_view message, LogFields fields) {
  boost::json::object line;
  line["time"] = FormatTime(Now());
  line["level"] = kLevelNames[static_cast<size_t>(level)].data();
  line["program"] = g_config.program;
  line["message"] = boost::json::string(message.data(), message.size());
  for (const auto& [key, value] : fields)
    line[boost::json::string_view(key.data(), key.size())] = value;
  return boost::json::serialize(line) + "\n";
}

std::string TextLine(LogLevel level, std::string_view message, LogFields fields) {
  std::string line =
      fmt::format("{} {:5} {}: {}", FormatTime(Now()), kLevelNames[static_cast<size_t>(level)],
                  g_config.program, message);
  for (const auto& [key, value] : fields)
    line += fmt::format(" {}={}", key, boost::json::serialize(value));
  return line + "\n";
}

struct Ring {
  struct Line {
    std::string sandbox;
    std::string json;
  };
  std::mutex mutex;
  std::deque<Line> lines;
};
Ring& TheRing() {
  static Ring ring;
  return ring;
}

void Remember(LogLevel level, std::string_view message, LogFields fields) {
  for (const auto& [key, value] : fields) {
    if (key != "sandbox" || !value.is_string()) continue;
    std::string line = JsonLine(level, message, fields);
    line.pop_back();  // its end of line
    Ring& ring = TheRing();
    std::lock_guard lock(ring.mutex);
    ring.lines.push_back({std::string(value.get_string()), std::move(line)});
    if (ring.lines.size() > kLogRingLines) ring.lines.pop_front();
    return;
  }
}

}  // namespace

std::vector<std::string> RecentLog(std::string_view sandbox) {
  std::vector<std::string> found;
  Ring& ring = TheRing();
  std::lock_guard lock(ring.mutex);
  for (const Ring::Line& line : ring.lines)
    if (line.sandbox == sandbox) found.push_back(line.json);
  return found;
}

void ConfigureLog(LogLevel level, LogFormat format, std::string_view program) {
  g_config = {level, format, std::string(program)};
}

void Log(LogLevel level, std::string_view message, LogFields fields) {
  if (level < g_config.level) return;
  Remember(level, message, fields);
  std::string line = g_config.format == LogFormat::kJson ? JsonLine(level, message, fields)
                                                         : TextLine(level, message, fields);
  // One write per line keeps lines of several processes whole; a full disk must not stop us.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace caisson
