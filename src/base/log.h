// Logging: one line per fact to stderr, JSON (or readable text on a terminal). No secrets: pass
// ids, never tokens. Levels: error = a person must act, warn = degraded, info = state change.
#pragma once

#include <boost/json/value.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace caisson {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogFormat { kText, kJson };

struct LogField {
  LogField(std::string_view k, std::string_view text)
      : key(k), value(boost::json::string(text.data(), text.size())) {}
  LogField(std::string_view k, const std::string& text) : LogField(k, std::string_view(text)) {}
  LogField(std::string_view k, const char* text) : LogField(k, std::string_view(text)) {}
  LogField(std::string_view k, boost::json::value v) : key(k), value(std::move(v)) {}
  std::string_view key;
  boost::json::value value;
};
using LogFields = std::initializer_list<LogField>;

// Process-wide; called once by main. `program` is the field "program" of every line.
void ConfigureLog(LogLevel level, LogFormat format, std::string_view program);

void Log(LogLevel level, std::string_view message, LogFields fields);
inline void LogDebug(std::string_view m, LogFields f = {}) { Log(LogLevel::kDebug, m, f); }
inline void LogInfo(std::string_view m, LogFields f = {}) { Log(LogLevel::kInfo, m, f); }
inline void LogWarn(std::string_view m, LogFields f = {}) { Log(LogLevel::kWarn, m, f); }
inline void LogError(std::string_view m, LogFields f = {}) { Log(LogLevel::kError, m, f); }

}  // namespace caisson
