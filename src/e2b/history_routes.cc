// Handlers for what happened: metrics and logs.
#include <boost/json.hpp>

#include "base/text.h"
#include "e2b/api.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxIds = 100;
constexpr int64_t kDefaultLogs = 1000, kMaxLogs = 10'000;

// Unix time in whole `Unit`s; far times are cut to what a Time can hold.
template <class Unit>
Result<std::optional<Time>> TakeTime(const http::Query& query, std::string_view name) {
  constexpr int64_t kMax = std::chrono::floor<Unit>(std::chrono::nanoseconds::max()).count();
  TRY_ASSIGN(auto number, TakeNumber(query, name, 0, std::numeric_limits<int64_t>::max()));
  if (!number) return std::optional<Time>();
  return std::optional<Time>(Time(Unit(std::min(*number, kMax - 1))));
}

Result<std::vector<std::string>> LevelsFrom(std::string_view least) {
  std::vector<std::string> levels{"debug", "info", "warn", "error"};
  auto it = std::find(levels.begin(), levels.end(), least);
  if (it == levels.end())
    return Fail(Code::kInvalidArgument, "level must be debug, info, warn or error, not '{}'",
                least);
  levels.erase(levels.begin(), it);
  return levels;
}

Result<store::EventQuery> DecodeLogsV1(const http::Query& query) {
  store::EventQuery events;
  TRY_ASSIGN(events.since, TakeTime<std::chrono::milliseconds>(query, "start"));
  TRY_ASSIGN(auto limit, TakeNumber(query, "limit", 0, std::numeric_limits<int32_t>::max()));
  events.limit = static_cast<size_t>(std::min(limit.value_or(kDefaultLogs), kMaxLogs));
  return events;
}

Result<store::EventQuery> DecodeLogsV2(const http::Query& query) {
  store::EventQuery events;
  TRY_ASSIGN(auto cursor, TakeTime<std::chrono::milliseconds>(query, "cursor"));
  TRY_ASSIGN(auto limit, TakeNumber(query, "limit", 0, std::numeric_limits<int32_t>::max()));
  events.limit = static_cast<size_t>(std::min(limit.value_or(kDefaultLogs), kMaxLogs));
  auto direction = query.Get("direction").value_or("forward");
  if (direction != "forward" && direction != "backward")
    return Fail(Code::kInvalidArgument, "direction must be forward or backward, not '{}'",
                direction);
  events.newest_first = direction == "backward";
  // The whole millisecond belongs to the cursor, whichever way it goes.
  if (cursor && events.newest_first)
    events.until = *cursor + std::chrono::milliseconds(1) - std::chrono::nanoseconds(1);
  else
    events.since = cursor;
  if (auto level = query.Get("level"); level && !level->empty()) {
    TRY_ASSIGN(events.levels, LevelsFrom(*level));
  }
  events.text = query.Get("search").value_or("");
  return events;
}

}  // namespace

Api::Answer Api::Metrics(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  http::Query query = call.query();
  CO_TRY_ASSIGN(auto start, TakeTime<std::chrono::seconds>(query, "start"));
  CO_TRY_ASSIGN(auto end, TakeTime<std::chrono::seconds>(query, "end"));
  if (end) *end += std::chrono::seconds(1) - std::chrono::nanoseconds(1);
  CO_TRY_ASSIGN(auto samples, co_await manager_.Metrics(call.key_id, info.id, start, end));
  json::array list;
  for (const sandbox::Sample& sample : samples) list.push_back(EncodeMetric(info.cpus, sample));
  co_return http::Response::Json(200, list);
}

Api::Answer Api::MetricsOfMany(Call call) {
  std::vector<std::string> ids;
  http::Query query = call.query();
  for (const auto& [name, value] : query.all()) {
    if (name != "sandbox_ids") continue;
    for (std::string_view id : Split(value, ','))
      if (!id.empty()) ids.emplace_back(id);
  }
  if (ids.empty() || ids.size() > kMaxIds)
    co_return Fail(Code::kInvalidArgument, "sandbox_ids must name 1 to {} sandboxes", kMaxIds);
  json::object found;
  for (const std::string& text : ids) {
    CO_TRY_ASSIGN(std::string id, DecodeSandboxId(text));
    auto info = manager_.Get(call.key_id, id);
    if (!info) continue;
    auto samples = co_await manager_.Metrics(call.key_id, id, {}, {});
    if (samples && !samples->empty()) found[id] = EncodeMetric(info->cpus, samples->back());
  }
  co_return http::Response::Json(200, json::object{{"sandboxes", std::move(found)}});
}

Api::Answer Api::LogsV1(Call call) {
  CO_TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto query, DecodeLogsV1(call.query()));
  CO_TRY_ASSIGN(auto events, co_await manager_.Events(call.key_id, id, std::move(query)));
  json::array lines, entries;
  for (const store::SandboxEvent& event : events) {
    lines.push_back(EncodeLogLine(event));
    entries.push_back(EncodeLogEntry(event));
  }
  co_return http::Response::Json(
      200, json::object{{"logs", std::move(lines)}, {"logEntries", std::move(entries)}});
}

Api::Answer Api::LogsV2(Call call) {
  CO_TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto query, DecodeLogsV2(call.query()));
  CO_TRY_ASSIGN(auto events, co_await manager_.Events(call.key_id, id, std::move(query)));
  json::array entries;
  for (const store::SandboxEvent& event : events) entries.push_back(EncodeLogEntry(event));
  co_return http::Response::Json(200, json::object{{"logs", std::move(entries)}});
}

}  // namespace caisson::e2b
