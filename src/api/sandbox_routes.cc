#include "api/sandbox_routes.h"

#include <boost/json.hpp>

#include "api/codec.h"
#include "base/text.h"
#include "e2b/codec.h"

namespace caisson::api {
namespace {

constexpr int64_t kMaxPage = 200;

constexpr std::string_view kNewSandbox = R"({
  "type": "object",
  "properties": {
    "template": {"type": "string", "maxLength": 200, "description": "default: task_template"},
    "timeout_s": {"type": "integer", "minimum": 1, "maximum": 2147483647},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "allow_internet": {"type": "boolean"},
    "wait_s": {"type": "integer", "minimum": 0, "maximum": 600,
               "description": "for room, if a quota is used up; 0 (default): refused at once"},
    "agent_id": {"type": "string", "maxLength": 100},
    "task_id": {"type": "string", "maxLength": 100},
    "repo_url": {"type": "string", "maxLength": 2000},
    "base_branch": {"type": "string", "maxLength": 200}}})";

constexpr std::string_view kSandbox = R"({
  "type": "object", "required": ["id", "status", "created_at"],
  "additionalProperties": true,
  "properties": {
    "id": {"type": "string"},
    "status": {"enum": ["creating", "running", "pausing", "paused", "resuming", "terminating",
                        "terminated", "error"]},
    "provider": {"type": "string"}, "backend_id": {"type": "string"},
    "backend_state": {"enum": ["running", "paused", "terminated", "unknown"]},
    "owner_id": {"type": "string"}, "holder_kind": {"type": "string"},
    "holder_id": {"type": "string"}, "agent_id": {"type": "string"}, "task_id": {"type": "string"},
    "repo_url": {"type": "string"}, "repo_path": {"type": "string"},
    "base_branch": {"type": "string"}, "branch_name": {"type": "string"},
    "last_commit_sha": {"type": "string"}, "last_commit_message": {"type": "string"},
    "pr_number": {"type": "integer"}, "last_error": {"type": "string"},
    "creation_ms": {"type": "integer"},
    "created_at": {"type": "string", "format": "date-time"},
    "last_used_at": {"type": "string", "format": "date-time"},
    "destroyed_at": {"type": "string", "format": "date-time"},
    "started_at": {"type": "string", "format": "date-time"},
    "ends_at": {"type": "string", "format": "date-time"},
    "last_checked_at": {"type": "string", "format": "date-time"}}})";

constexpr std::string_view kSandboxList = R"({
  "type": "object", "required": ["sandboxes", "total"],
  "properties": {
    "sandboxes": {"type": "array", "items": {"$ref": "#/components/schemas/Sandbox"}},
    "total": {"type": "integer", "description": "of all pages"}}})";

std::string TextOf(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::string> IdOf(const json::object& body, std::string_view name) {
  std::string text = TextOf(body, name);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::map<std::string, std::string> MapOf(const json::object& body, std::string_view name) {
  std::map<std::string, std::string> map;
  const json::value* value = body.if_contains(name);
  if (value && value->is_object())
    for (const auto& [key, text] : value->get_object())
      map[key] = text.is_string() ? std::string(text.get_string()) : std::string();
  return map;
}

int64_t NumberOf(const http::Query& query, std::string_view name, int64_t otherwise) {
  auto text = query.Get(name);
  return text ? ParseInt<int64_t>(*text).value_or(otherwise) : otherwise;
}

std::string QueryOf(const http::Query& query, std::string_view name) {
  return std::string(query.Get(name).value_or(""));
}

json::object EncodeState(const work::SandboxState& state) {
  json::object body = EncodeSandbox(state.row);
  body["backend_state"] = state.backend_state;
  body["last_checked_at"] = FormatTime(state.checked_at);
  if (state.started_at) body["started_at"] = FormatTime(*state.started_at);
  if (state.ends_at) body["ends_at"] = FormatTime(*state.ends_at);
  return body;
}

json::object EncodeList(const std::vector<work::SandboxRow>& rows, int64_t total) {
  json::array items;
  for (const work::SandboxRow& row : rows) items.push_back(EncodeSandbox(row));
  return {{"sandboxes", std::move(items)}, {"total", total}};
}

std::vector<Parameter> ListParameters(bool with_all) {
  std::vector<Parameter> list = {
      {.name = "status",
       .description = "only those with this status; also active, stopped, created, provisioning"},
      {.name = "holder_kind",
       .description = "for whom they were made",
       .values = {"task", "session", "build", "user"}},
      {.name = "task_id", .description = "only of this task"},
      {.name = "agent_id", .description = "only of this agent"},
      {.name = "ended", .type = "boolean", .description = "those that have ended, too [true]"},
      {.name = "limit", .type = "integer", .min = 1, .max = kMaxPage},
      {.name = "offset", .type = "integer"}};
  if (with_all) list.push_back(kAllParameter);
  return list;
}

// Other words for the same, which other programs use.
std::string StatusNamed(std::string word) {
  word = ToLower(word);
  if (word == "active") return "running";
  if (word == "stopped") return "terminated";
  if (word == "created" || word == "provisioning") return "creating";
  return word;
}

}  // namespace

json::object EncodeSandbox(const work::SandboxRow& row) {
  json::object body{{"id", row.id},
                    {"status", row.status},
                    {"provider", row.provider},
                    {"backend_id", row.backend_id},
                    {"owner_id", row.owner_id},
                    {"holder_kind", row.holder_kind},
                    {"creation_ms", row.creation_ms},
                    {"created_at", FormatTime(row.created_at)},
                    {"last_used_at", FormatTime(row.last_used_at)}};
  auto add = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) body[name] = ToUtf8(text);
  };
  if (row.holder_kind != "user") add("holder_id", row.holder_id);
  add("agent_id", row.agent_id.value_or(""));
  add("task_id", row.task_id.value_or(""));
  add("repo_url", row.repo_url);
  add("repo_path", row.repo_path);
  add("base_branch", row.base_branch);
  add("branch_name", row.branch_name);
  add("last_commit_sha", row.last_commit_sha);
  add("last_commit_message", row.last_commit_message);
  add("last_error", row.last_error);
  if (row.pr_number > 0) body["pr_number"] = row.pr_number;
  if (row.destroyed_at) body["destroyed_at"] = FormatTime(*row.destroyed_at);
  return body;
}

http::Response RefusedSandbox(const Error& error, const Call& call) {
  Refusal refusal = RefusalOf(error);
  if (error.code() == Code::kUnauthenticated)
    refusal = {503, "backend_unauthenticated",
               "the provider of sandboxes refuses this server's key: " + error.message(), false, 0};
  return ErrorResponse(refusal, call.exchange.request_id());
}

Answer SandboxRoutes::Create(Call& call) {
  const json::object& body = call.body;
  work::SandboxRequest request;
  request.owner_id = call.who.user_id;
  // Asked for again after a crash, the one that was made is found by it.
  request.holder.id = call.new_id;
  request.holder.agent_id = IdOf(body, "agent_id");
  request.holder.task_id = IdOf(body, "task_id");
  request.template_name = TextOf(body, "template");
  if (const json::value* seconds = body.if_contains("timeout_s"); seconds && seconds->is_int64())
    request.timeout = std::chrono::seconds(seconds->get_int64());
  if (const json::value* seconds = body.if_contains("wait_s"); seconds && seconds->is_int64())
    request.wait = std::chrono::seconds(seconds->get_int64());
  request.metadata = MapOf(body, "metadata");
  request.env = MapOf(body, "env");
  if (const json::value* allow = body.if_contains("allow_internet"); allow && allow->is_bool())
    request.allow_internet = allow->get_bool();
  request.repo_url = TextOf(body, "repo_url");
  request.base_branch = TextOf(body, "base_branch");
  auto made = co_await sandboxes_.Create(std::move(request));
  if (!made) co_return RefusedSandbox(made.error(), call);
  call.target = made->id;
  co_return http::Response::Json(201, EncodeSandbox(*made));
}

Answer SandboxRoutes::ListBy(Call& call, std::string owner_id) {
  const http::Query& query = call.query;
  work::SandboxFilter filter{.owner_id = std::move(owner_id),
                             .status = StatusNamed(QueryOf(query, "status")),
                             .holder_kind = QueryOf(query, "holder_kind"),
                             .task_id = QueryOf(query, "task_id"),
                             .agent_id = QueryOf(query, "agent_id"),
                             .ended = query.Get("ended") != "false",
                             .limit = NumberOf(query, "limit", 50),
                             .offset = NumberOf(query, "offset", 0)};
  CO_TRY_ASSIGN(auto list, co_await sandboxes_.List(std::move(filter)));
  co_return http::Response::Json(200, EncodeList(list.items, list.total));
}

Answer SandboxRoutes::List(Call& call) { return ListBy(call, call.owner()); }
Answer SandboxRoutes::ListAll(Call& call) { return ListBy(call, ""); }

// What the platform knows and what the engine knows, in one answer.
Answer SandboxRoutes::Show(Call& call) {
  std::string id = call.params.at("id");
  auto state = co_await sandboxes_.Get(call.who.user_id, id);
  if (!state && state.error().code() != Code::kNotFound)
    co_return RefusedSandbox(state.error(), call);
  std::string owner = state ? state->row.owner_id : call.who.user_id;
  std::string inside = state ? state->row.backend_id : id;
  Result<sandbox::Detail> detail = Fail(Code::kNotFound, "sandbox '{}' does not exist", id);
  if (e2b::DecodeSandboxId(inside)) detail = co_await manager_.Inspect(owner, inside);
  if (!state && !detail) co_return RefusedSandbox(detail.error(), call);
  json::object body = detail ? EncodeDetail(*detail) : json::object();
  if (state) {
    for (auto& [name, value] : EncodeState(*state)) body[name] = std::move(value);
  } else {
    body["id"] = id;
    body["status"] = detail->state == "killed" ? "terminated" : detail->state;
    body["created_at"] = body["startedAt"];
  }
  co_return http::Response::Json(200, body);
}

Answer SandboxRoutes::Destroy(Call& call) {
  Status ended = co_await sandboxes_.Destroy(call.who.user_id, call.params.at("id"));
  if (!ended) co_return RefusedSandbox(ended.error(), call);
  co_return http::Response::Empty(204);
}

Answer SandboxRoutes::Pause(Call& call) {
  Status paused = co_await sandboxes_.Pause(call.who.user_id, call.params.at("id"));
  if (!paused) co_return RefusedSandbox(paused.error(), call);
  co_return co_await Show(call);
}

Answer SandboxRoutes::Resume(Call& call) {
  Status resumed = co_await sandboxes_.Resume(call.who.user_id, call.params.at("id"));
  if (!resumed) co_return RefusedSandbox(resumed.error(), call);
  co_return co_await Show(call);
}

Answer SandboxRoutes::CleanUp(Call& call) {
  CO_TRY_ASSIGN(auto rows, co_await sandboxes_.CleanUpStale(call.query.Get("dry_run") == "true"));
  co_return http::Response::Json(200, EncodeList(rows, static_cast<int64_t>(rows.size())));
}

void SandboxRoutes::Add(Frame& frame) {
  frame.AddSchema("NewSandbox", kNewSandbox);
  frame.AddSchema("Sandbox", kSandbox);
  frame.AddSchema("SandboxList", kSandboxList);
  auto add = [&](std::string_view method, std::string_view pattern, std::string_view id,
                 std::string_view summary, Method handler, Access access,
                 std::map<int, std::string_view> responses, std::vector<Parameter> parameters = {},
                 std::string_view request = {}) {
    frame.Add({.method = method,
               .pattern = pattern,
               .tag = "sandboxes",
               .id = id,
               .summary = summary,
               .access = access,
               .parameters = std::move(parameters),
               .request = request,
               .body_optional = true,
               .responses = std::move(responses),
               .handler = Bind(handler)});
  };
  add("POST", "/api/v1/sandboxes", "createSandbox", "Make a sandbox", &SandboxRoutes::Create,
      Access::kMember, {{201, "Sandbox"}, {409, "Error"}, {503, "Error"}, {504, "Error"}}, {},
      "NewSandbox");
  add("GET", "/api/v1/sandboxes", "listSandboxes", "Your sandboxes, newest first",
      &SandboxRoutes::List, Access::kViewer, {{200, "SandboxList"}}, ListParameters(true));
  add("GET", "/api/v1/admin/sandboxes", "listAllSandboxes", "Everybody's sandboxes, newest first",
      &SandboxRoutes::ListAll, Access::kAdmin, {{200, "SandboxList"}}, ListParameters(false));
  add("POST", "/api/v1/admin/sandboxes/cleanup", "cleanUpSandboxes",
      "End the sandboxes that are older than task_sandbox_timeout_s", &SandboxRoutes::CleanUp,
      Access::kAdmin, {{200, "SandboxList"}},
      {{.name = "dry_run", .type = "boolean", .description = "only tell which"}});
  add("GET", "/api/v1/sandboxes/{id}", "getSandbox",
      "State, limits, use and end of a sandbox; wakes nothing", &SandboxRoutes::Show,
      Access::kViewer, {{200, "Sandbox"}});
  add("DELETE", "/api/v1/sandboxes/{id}", "destroySandbox", "End a sandbox",
      &SandboxRoutes::Destroy, Access::kMember, {{204, ""}, {503, "Error"}});
  add("POST", "/api/v1/sandboxes/{id}/pause", "pauseSandbox", "Put a sandbox away",
      &SandboxRoutes::Pause, Access::kMember, {{200, "Sandbox"}, {409, "Error"}, {503, "Error"}});
  add("POST", "/api/v1/sandboxes/{id}/resume", "resumeSandbox", "Let a paused sandbox run again",
      &SandboxRoutes::Resume, Access::kMember, {{200, "Sandbox"}, {409, "Error"}, {503, "Error"}});
  AddCommands(frame);
}

}  // namespace caisson::api
