#include "api/server_routes.h"

#include <boost/json.hpp>
#include <cmath>

#include "api/fields.h"
#include "store/account_rows.h"

namespace caisson::api {
namespace {

using store::AuditRow;
using store::Select;
using store::Transaction;

constexpr int64_t kDefaultEntries = 100, kMaxEntries = 1000;
constexpr std::chrono::milliseconds kProbeTimeout{2'000};

constexpr std::string_view kHealthSchema = R"({
  "type": "object", "required": ["status", "version"],
  "properties": {"status": {"const": "ok"}, "version": {"type": "string"}}})";
constexpr std::string_view kDetailedSchema = R"({
  "type": "object", "required": ["status", "version", "time", "checks", "alerts"],
  "properties": {
    "status": {"enum": ["ok", "degraded", "down"]}, "version": {"type": "string"},
    "time": {"type": "string", "format": "date-time", "description": "the server's clock"},
    "checks": {"type": "object", "additionalProperties": {
      "type": "object", "required": ["status", "ms"], "additionalProperties": true,
      "properties": {"status": {"enum": ["ok", "failed"]}, "ms": {"type": "number"},
                     "message": {"type": "string"}}}},
    "alerts": {"type": "array", "description": "limits that are crossed; see alert_check_s", "items": {
      "type": "object", "required": ["rule", "value", "limit", "since", "message"],
      "properties": {"rule": {"type": "string"}, "value": {"type": "number"},
                     "limit": {"type": "number"},
                     "since": {"type": "string", "format": "date-time"},
                     "message": {"type": "string"}}}}}})";
constexpr std::string_view kAuditSchema = R"({
  "type": "object", "required": ["entries"],
  "properties": {
    "entries": {"type": "array", "items": {
      "type": "object",
      "required": ["id", "at", "actor_id", "key_id", "action", "target", "status", "request_id",
                   "address"],
      "properties": {
        "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
        "actor_id": {"type": "string", "description": "a user; empty if nobody who is known"},
        "key_id": {"type": "string", "description": "empty for a login"},
        "action": {"type": "string", "description": "method and route"},
        "target": {"type": "string"}, "status": {"type": "integer"},
        "request_id": {"type": "string"}, "address": {"type": "string"}}}},
    "next": {"type": "integer", "description": "there is more: give it as `before`"}}})";

Answer Health() {
  co_return http::Response::Json(200, json::object{{"status", "ok"}, {"version", CAISSON_VERSION}});
}

Answer DetailedHealth(const std::vector<HealthProbe>& probes, json::array alerts) {
  json::object checks;
  bool degraded = false, down = false;
  for (const HealthProbe& probe : probes) {
    auto begun = std::chrono::steady_clock::now();
    auto said = co_await WithDeadline(kProbeTimeout, probe.name, probe.ask());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    json::object check = said ? std::move(*said) : json::object();
    check["status"] = said ? "ok" : "failed";
    check["ms"] = std::round(took.count() * 10) / 10;
    if (!said) check["message"] = said.error().message();
    if (!said) (probe.vital ? down : degraded) = true;
    checks[probe.name] = std::move(check);
  }
  co_return http::Response::Json(down ? 503 : 200, json::object{{"status", down       ? "down"
                                                                           : degraded ? "degraded"
                                                                                      : "ok"},
                                                                {"version", CAISSON_VERSION},
                                                                {"time", FormatTime(Now())},
                                                                {"checks", std::move(checks)},
                                                                {"alerts", std::move(alerts)}});
}

json::object EncodeAudit(const AuditRow& row) {
  return {{"id", row.id},         {"at", FormatTime(row.at)},     {"actor_id", row.actor_id},
          {"key_id", row.key_id}, {"action", row.action},         {"target", row.target},
          {"status", row.status}, {"request_id", row.request_id}, {"address", row.address}};
}

Answer ListAudit(store::Store& store, Call& call) {
  int64_t limit = NumberParameter(call.query, "limit", kDefaultEntries);
  // One more than asked for tells whether there is a next page.
  auto wanted = Select<AuditRow>().Order(&AuditRow::id, /*descending=*/true).Limit(limit + 1);
  if (int64_t before = NumberParameter(call.query, "before", 0)) wanted.Less(&AuditRow::id, before);
  if (std::string actor = TextParameter(call.query, "actor_id"); !actor.empty())
    wanted.Eq(&AuditRow::actor_id, actor);
  if (std::string target = TextParameter(call.query, "target"); !target.empty())
    wanted.Eq(&AuditRow::target, target);
  CO_TRY_ASSIGN(auto rows,
                co_await store.Read([wanted](Transaction& tx) { return tx.List(wanted); }));
  bool more = rows.size() > static_cast<size_t>(limit);
  if (more) rows.pop_back();
  json::array entries;
  for (const AuditRow& row : rows) entries.push_back(EncodeAudit(row));
  json::object body{{"entries", std::move(entries)}};
  if (more) body["next"] = rows.back().id;
  co_return http::Response::Json(200, body);
}

Answer ShowDocument(Frame& frame, std::shared_ptr<std::string> text) {
  if (text->empty()) *text = json::serialize(frame.Document());
  http::Response response = http::Response::Text(200, *text);
  response.headers.Set("Content-Type", "application/json");
  co_return response;
}

Task<Result<json::object>> AskDatabase(store::Store& store) {
  CO_TRY_ASSIGN(int64_t users, co_await store.Read([](Transaction& tx) {
    return tx.Count(Select<store::UserRow>());
  }));
  json::object answer{{"users", users}};
  if (!store.node().empty()) answer["node"] = store.node();
  co_return answer;
}

}  // namespace

HealthProbe DatabaseProbe(store::Store& store) {
  return {.name = "database", .vital = true, .ask = [&store] { return AskDatabase(store); }};
}

void AddServerRoutes(Frame& frame, store::Store& store, std::vector<HealthProbe> probes,
                     std::function<json::array()> alerts) {
  frame.AddSchema("Health", kHealthSchema);
  frame.AddSchema("DetailedHealth", kDetailedSchema);
  frame.AddSchema("AuditLog", kAuditSchema);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/health",
             .tag = "server",
             .id = "getHealth",
             .summary = "The server answers",
             .access = Access::kNobody,
             .responses = {{200, "Health"}},
             .handler = [](Call&) { return Health(); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/health/detailed",
             .tag = "server",
             .id = "getDetailedHealth",
             .summary = "What the server needs, each asked now",
             .access = Access::kViewer,
             .responses = {{200, "DetailedHealth"}, {503, "DetailedHealth"}},
             .handler = [list = std::make_shared<std::vector<HealthProbe>>(std::move(probes)),
                         alerts](Call&) { return DetailedHealth(*list, alerts()); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/audit",
             .tag = "server",
             .id = "listAudit",
             .summary = "Every call that changed something, newest first",
             .access = Access::kAdmin,
             .parameters =
                 {{.name = "before", .type = "integer", .description = "id of an entry", .min = 1},
                  {.name = "limit", .type = "integer", .min = 1, .max = kMaxEntries},
                  {.name = "actor_id", .description = "only of this user"},
                  {.name = "target", .description = "only about this id"}},
             .responses = {{200, "AuditLog"}},
             .handler = [&store](Call& call) { return ListAudit(store, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/openapi.json",
             .tag = "server",
             .id = "getOpenApi",
             .summary = "This document",
             .access = Access::kNobody,
             .handler = [&frame, text = std::make_shared<std::string>()](Call&) {
               return ShowDocument(frame, text);
             }});
}

}  // namespace caisson::api
