#include "api/inspect_routes.h"

#include <boost/json.hpp>

#include "api/codec.h"
#include "base/text.h"
#include "e2b/codec.h"
#include "e2b/limits.h"

namespace caisson::api {
namespace {

constexpr int64_t kDefaultEvents = 100, kMaxEvents = 1000;

constexpr std::string_view kLimitsSchema = R"({
  "type": "object",
  "required": ["cpuCount", "memoryMB", "diskSizeMB", "pids", "openFiles", "outputKBps"],
  "properties": {
    "cpuCount": {"type": "integer"}, "memoryMB": {"type": "integer"},
    "diskSizeMB": {"type": "integer"}, "pids": {"type": "integer"},
    "openFiles": {"type": "integer"}, "outputKBps": {"type": "integer"}}})";
constexpr std::string_view kLimitsChangeSchema = R"({
  "type": "object", "minProperties": 1,
  "properties": {
    "cpuCount": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "memoryMB": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "diskSizeMB": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "pids": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "openFiles": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "outputKBps": {"type": "integer", "minimum": 0, "maximum": 2147483647}}})";
constexpr std::string_view kDetailSchema = R"({
  "type": "object",
  "required": ["sandboxID", "templateID", "state", "startedAt", "endAt", "metadata", "secure",
               "allowInternetAccess", "limits"],
  "properties": {
    "sandboxID": {"type": "string"}, "templateID": {"type": "string"}, "alias": {"type": "string"},
    "state": {"enum": ["running", "paused", "killed"]}, "reason": {"type": "string"},
    "startedAt": {"type": "string", "format": "date-time"},
    "endAt": {"type": "string", "format": "date-time"},
    "endedAt": {"type": "string", "format": "date-time"},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    "secure": {"type": "boolean"}, "allowInternetAccess": {"type": "boolean"},
    "limits": {"$ref": "#/components/schemas/SandboxLimits"},
    "usage": {"type": "object", "description": "the last sample"},
    "saved": {
      "type": "object", "required": ["tier", "memoryBytes", "diskBytes", "at"],
      "properties": {
        "tier": {"enum": ["memory", "files", "frozen"]}, "whyFrozen": {"type": "string"},
        "memoryBytes": {"type": "integer"}, "diskBytes": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"}}}}})";
constexpr std::string_view kTimelineSchema = R"({
  "type": "object", "required": ["events"],
  "properties": {
    "events": {"type": "array", "items": {
      "type": "object", "required": ["id", "at", "type", "level", "message", "fields"],
      "properties": {
        "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
        "type": {"type": "string"}, "level": {"type": "string"}, "reason": {"type": "string"},
        "message": {"type": "string"},
        "fields": {"type": "object", "additionalProperties": {"type": "string"}}}}},
    "next": {"type": "integer", "description": "there is more: give it as `after`"}}})";
constexpr std::string_view kDiagnosticsSchema = R"({
  "type": "object",
  "required": ["madeAt", "server", "engine", "sandbox", "timeline", "metrics", "log"],
  "additionalProperties": true,
  "properties": {"sandbox": {"$ref": "#/components/schemas/SandboxDetail"}}})";
constexpr std::string_view kStorageSchema = R"({
  "type": "object", "required": ["running", "paused", "snapshots"],
  "additionalProperties": {
    "type": "object", "required": ["count", "memoryBytes", "diskBytes"],
    "properties": {"count": {"type": "integer"}, "memoryBytes": {"type": "integer"},
                   "diskBytes": {"type": "integer"}}}})";
constexpr std::string_view kDrainedSchema = R"({
  "type": "object", "required": ["paused", "failed"],
  "properties": {
    "paused": {"type": "integer", "description": "how many sandboxes"},
    "failed": {"type": "array", "items": {
      "type": "object", "required": ["sandboxID", "message"],
      "properties": {"sandboxID": {"type": "string"}, "message": {"type": "string"}}}}}})";
constexpr std::string_view kDrainingSchema = R"({
  "type": "object", "required": ["draining"], "properties": {"draining": {"type": "boolean"}}})";

Answer Timeline(sandbox::Manager& manager, Call& call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  auto number = [&](std::string_view name, int64_t otherwise) {
    auto text = call.query.Get(name);
    return text ? ParseInt<int64_t>(*text).value_or(otherwise) : otherwise;
  };
  auto most = static_cast<size_t>(number("limit", kDefaultEvents));
  // One more than asked for tells whether there is a next page.
  CO_TRY_ASSIGN(auto events,
                co_await manager.Events(call.who.user_id, id,
                                        {.after_id = number("after", 0), .limit = most + 1}));
  bool more = events.size() > most;
  if (more) events.pop_back();
  json::array list;
  for (const store::SandboxEvent& event : events) list.push_back(EncodeEvent(event));
  json::object body{{"events", std::move(list)}};
  if (more) body["next"] = events.back().id;
  co_return http::Response::Json(200, body);
}

Answer Diagnostics(sandbox::Manager& manager, const Config& config, Call& call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto diagnosis, co_await manager.Diagnose(call.who.user_id, id));
  auto response = http::Response::Json(200, EncodeDiagnosis(diagnosis, config));
  response.headers.Set("Content-Disposition",
                       fmt::format("attachment; filename=\"{}.diagnostics.json\"", id));
  co_return response;
}

Answer SetLimits(sandbox::Manager& manager, Call& call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto limits, e2b::DecodeLimits(call.body));
  CO_TRY_ASSIGN(auto info, co_await manager.SetLimits(call.who.user_id, id, limits));
  co_return http::Response::Json(200, e2b::EncodeLimits(info));
}

Answer Storage(sandbox::Manager& manager) {
  CO_TRY_ASSIGN(auto use, co_await manager.Storage());
  co_return http::Response::Json(200, EncodeStorage(use));
}

Answer Drain(sandbox::Manager& manager) {
  sandbox::Drained drained = co_await manager.Drain();
  json::array failed;
  for (const auto& [id, why] : drained.failed)
    failed.push_back(json::object{{"sandboxID", id}, {"message", why}});
  co_return http::Response::Json(
      200, json::object{{"paused", drained.paused}, {"failed", std::move(failed)}});
}

Answer EndDrain(sandbox::Manager& manager) {
  manager.EndDrain();
  co_return http::Response::Json(200, json::object{{"draining", false}});
}

}  // namespace

void AddInspectRoutes(Frame& frame, sandbox::Manager& manager, const Config& config) {
  frame.AddSchema("SandboxLimits", kLimitsSchema);
  frame.AddSchema("SandboxLimitsChange", kLimitsChangeSchema);
  frame.AddSchema("SandboxDetail", kDetailSchema);
  frame.AddSchema("SandboxTimeline", kTimelineSchema);
  frame.AddSchema("SandboxDiagnostics", kDiagnosticsSchema);
  frame.AddSchema("Storage", kStorageSchema);
  frame.AddSchema("Drained", kDrainedSchema);
  frame.AddSchema("Draining", kDrainingSchema);

  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/timeline",
             .tag = "sandboxes",
             .id = "getSandboxTimeline",
             .summary = "What happened to a sandbox, oldest first",
             .access = Access::kViewer,
             .parameters = {{.name = "after", .type = "integer", .description = "id of an event"},
                            {.name = "limit", .type = "integer", .min = 1, .max = kMaxEvents}},
             .responses = {{200, "SandboxTimeline"}, {400, "Error"}},
             .handler = [&manager](Call& call) { return Timeline(manager, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/diagnostics",
             .tag = "sandboxes",
             .id = "getSandboxDiagnostics",
             .summary = "One document to find out what went wrong, without secrets",
             .access = Access::kViewer,
             .responses = {{200, "SandboxDiagnostics"}, {400, "Error"}},
             .handler = [&](Call& call) { return Diagnostics(manager, config, call); }});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/sandboxes/{id}/limits",
             .tag = "sandboxes",
             .id = "setSandboxLimits",
             .summary = "Change limits: at once, of a paused sandbox when it is resumed",
             .request = "SandboxLimitsChange",
             .responses = {{200, "SandboxLimits"}, {409, "Error"}, {501, "Error"}},
             .handler = [&manager](Call& call) { return SetLimits(manager, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/storage",
             .tag = "server",
             .id = "getStorage",
             .summary = "How many sandboxes there are and the disk they use",
             .access = Access::kAdmin,
             .responses = {{200, "Storage"}},
             .handler = [&manager](Call&) { return Storage(manager); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/drain",
             .tag = "server",
             .id = "drain",
             .summary = "Pause every sandbox and let none start",
             .access = Access::kAdmin,
             .responses = {{200, "Drained"}},
             .handler = [&manager](Call&) { return Drain(manager); }});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/drain",
             .tag = "server",
             .id = "endDrain",
             .summary = "Let sandboxes start again",
             .access = Access::kAdmin,
             .responses = {{200, "Draining"}},
             .handler = [&manager](Call&) { return EndDrain(manager); }});
}

}  // namespace caisson::api
