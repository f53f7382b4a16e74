#include "api/share_routes.h"

#include <array>
#include <boost/json.hpp>

#include "api/change_routes.h"
#include "api/event_routes.h"
#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

constexpr int64_t kExecutions = 20;  // that are shown
constexpr int64_t kMaxPage = 1'000;

constexpr std::string_view kNewShare = R"({"type":"object","properties":{
  "expires_hours":{"type":"integer","minimum":1,"description":"share_default_hours if not said"}}})";
constexpr std::string_view kMadeShare = R"({"type":"object","required":["id","url","expires_at"],
  "properties":{"id":{"type":"string"},
    "url":{"type":"string","description":"told this once: the server does not keep it"},
    "expires_at":{"type":"string","format":"date-time"}}})";
constexpr std::string_view kShare = R"({"type":"object","properties":{"id":{"type":"string"},
  "created_at":{"type":"string","format":"date-time"},
  "expires_at":{"type":"string","format":"date-time"}}})";
constexpr std::string_view kSharedTask = R"({"type":"object","required":["task","executions"],
  "properties":{
  "task":{"type":"object","properties":{"number":{"type":"integer"},"title":{"type":"string"},
    "description":{"type":"string"},"status":{"type":"string"},"priority":{"type":"string"},
    "repo_url":{"type":"string"},"base_branch":{"type":"string"},"git_branch":{"type":"string"},
    "pull_request_url":{"type":"string"},"pull_request_number":{"type":"integer"},
    "pull_request_state":{"type":"string"},
    "created_at":{"type":"string","format":"date-time"},
    "updated_at":{"type":"string","format":"date-time"},
    "completed_at":{"type":["string","null"],"format":"date-time"}}},
  "executions":{"type":"array","description":"newest first",
    "items":{"$ref":"#/components/schemas/Execution"}}}})";

// Fields that tell whose it is and where it runs.
constexpr std::array<std::string_view, 10> kHidden = {
    "owner_id", "user_id",    "sandbox_id", "backend_id", "agent_id",
    "squad_id", "session_id", "run_id",     "decided_by", "options"};

std::string WithoutIds(std::string text, const std::vector<std::string>& ids) {
  for (const std::string& id : ids)
    for (size_t at = 0; (at = text.find(id, at)) != text.npos;) text.replace(at, id.size(), "***");
  return text;
}

// SECURITY: also where an id stands in the middle of a text, as in the address of a preview.
void Hide(json::value& value, const std::vector<std::string>& ids) {
  if (value.is_string()) {
    value = WithoutIds(std::string(value.get_string()), ids);
  } else if (value.is_array()) {
    for (json::value& item : value.get_array()) Hide(item, ids);
  } else if (value.is_object()) {
    json::object& object = value.get_object();
    for (std::string_view name : kHidden) object.erase(name);
    for (auto& [name, item] : object) Hide(item, ids);
  }
}

std::string UrlOf(const Call& call, const std::string& token) {
  return fmt::format("{}://{}/app/shared/{}", call.exchange.IsTls() ? "https" : "http",
                     call.exchange.request().headers.Value("Host"), token);
}

json::object EncodeShared(const store::TaskRow& task) {
  json::object whole = Encode(work::TaskView{.row = task});
  json::object shown;
  for (std::string_view name :
       {"number", "title", "description", "status", "priority", "repo_url", "base_branch",
        "git_branch", "pull_request_url", "pull_request_number", "pull_request_state", "created_at",
        "updated_at", "completed_at"})
    shown[name] = whole.at(name);
  return shown;
}

Answer Create(work::Work& work, Call& call) {
  std::optional<int64_t> hours;
  if (call.body.contains("expires_hours")) hours = work::IntOf(call.body, "expires_hours");
  CO_TRY_ASSIGN(auto made,
                co_await work.shares.Create(call.who.user_id, call.params.at("id"), hours));
  call.target = made.row.id;
  co_return http::Response::Json(201,
                                 json::object{{"id", made.row.id},
                                              {"url", UrlOf(call, made.token)},
                                              {"expires_at", FormatTime(made.row.expires_at)}});
}

Answer List(work::Work& work, Call& call) {
  CO_TRY_ASSIGN(auto rows, co_await work.shares.List(call.who.user_id, call.params.at("id")));
  json::array shares;
  for (const store::TaskShareRow& row : rows)
    shares.push_back(json::object{{"id", row.id},
                                  {"created_at", FormatTime(row.created_at)},
                                  {"expires_at", FormatTime(row.expires_at)}});
  co_return http::Response::Json(
      200, json::object{{"shares", std::move(shares)}, {"total", rows.size()}});
}

Answer Revoke(work::Work& work, Call& call) {
  call.target = call.params.at("share");
  CO_TRY(co_await work.shares.Revoke(call.who.user_id, call.params.at("id"), call.target));
  co_return http::Response::Empty(204);
}

}  // namespace

Answer ShareRoutes::Show(Call& call, Shown show) {
  std::string address = call.exchange.PeerAddress();
  if (auto wait = requests_.Wait(address); wait.count() > 0) {
    Refusal refusal = RefusalOf(Error(Code::kResourceExhausted, "this address asks too often"));
    refusal.retry_after_s = wait.count();
    co_return ErrorResponse(refusal, call.exchange.request_id());
  }
  requests_.Add(address);
  CO_TRY_ASSIGN(work::SharedTask shared, co_await work_.shares.Open(call.params.at("token")));
  std::vector<std::string> ids = shared.sandbox_ids;
  CO_TRY_ASSIGN(json::object shown, co_await (this->*show)(call, std::move(shared)));
  json::value body = std::move(shown);
  Hide(body, ids);
  http::Response response = http::Response::Json(200, body);
  response.headers.Set("Cache-Control", "no-store");
  co_return response;
}

Task<Result<json::object>> ShareRoutes::ShowTask(Call&, work::SharedTask shared) {
  const store::TaskRow& task = shared.task;
  CO_TRY_ASSIGN(auto listed, co_await work_.executions.List(task.owner_id, task.id,
                                                            {.limit = kExecutions, .offset = 0}));
  json::array executions;
  for (const store::ExecutionRow& row : listed.items) {
    CO_TRY_ASSIGN(auto execution, co_await work_.executions.Get(task.owner_id, row.id));
    executions.push_back(Encode(execution));
  }
  co_return json::object{{"task", EncodeShared(task)}, {"executions", std::move(executions)}};
}

Task<Result<json::object>> ShareRoutes::ShowEvents(Call& call, work::SharedTask shared) {
  events::Filter filter{.owner_id = shared.task.owner_id, .task_ids = {shared.task.id}};
  auto limit = static_cast<size_t>(NumberParameter(call, "limit", 100));
  CO_TRY_ASSIGN(auto events,
                co_await log_.After(filter, NumberParameter(call, "after", 0), limit + 1));
  co_return EncodeEventPage(std::move(events), limit);
}

Task<Result<json::object>> ShareRoutes::ShowChanges(Call&, work::SharedTask shared) {
  CO_TRY_ASSIGN(auto found, co_await changes_.Of(shared.task.owner_id, shared.task.id,
                                                 /*since_commit=*/false));
  co_return Encode(found);
}

void ShareRoutes::AddOwners(Frame& frame) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/shares",
             .tag = "tasks",
             .id = "shareTask",
             .summary = "Make a link by which anybody may look at a task",
             .request = "NewTaskShare",
             .body_optional = true,
             .secret = true,
             .responses = {{201, "MadeTaskShare"}, {429, "Error"}},
             .handler = Bind(work_, Create)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}/shares",
             .tag = "tasks",
             .id = "listTaskShares",
             .summary = "The links to a task that are good",
             .access = Access::kViewer,
             .responses = {{200, "TaskShareList"}},
             .handler = Bind(work_, List)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/tasks/{id}/shares/{share}",
             .tag = "tasks",
             .id = "revokeTaskShare",
             .summary = "Revoke a link to a task",
             .responses = {{204, ""}},
             .handler = Bind(work_, Revoke)});
}

void ShareRoutes::AddAnybodys(Frame& frame) {
  auto add = [&](std::string_view pattern, std::string_view id, std::string_view summary,
                 Shown show, std::string_view schema, std::vector<Parameter> parameters) {
    frame.Add({.method = "GET",
               .pattern = pattern,
               .tag = "shared",
               .id = id,
               .summary = summary,
               .access = Access::kNobody,
               .parameters = std::move(parameters),
               .responses = {{200, schema}},
               .handler = [this, show](Call& call) { return Show(call, show); }});
  };
  add("/api/v1/shared/{token}", "getSharedTask", "The task that a link leads to",
      &ShareRoutes::ShowTask, "SharedTask", {});
  add("/api/v1/shared/{token}/events", "listSharedEvents", "Its events by pages, oldest first",
      &ShareRoutes::ShowEvents, "EventPage",
      {{.name = "after", .type = "integer", .description = "only after this id"},
       {.name = "limit",
        .type = "integer",
        .description = "100 if not said",
        .min = 1,
        .max = kMaxPage}});
  add("/api/v1/shared/{token}/changes", "getSharedChanges", "What it has changed",
      &ShareRoutes::ShowChanges, "TaskChanges", {});
}

void ShareRoutes::Add(Frame& frame) {
  frame.AddSchema("NewTaskShare", kNewShare);
  frame.AddSchema("MadeTaskShare", kMadeShare);
  frame.AddSchema("TaskShare", kShare);
  frame.AddSchema("TaskShareList", ListSchema("shares", "TaskShare"));
  frame.AddSchema("SharedTask", kSharedTask);
  AddOwners(frame);
  AddAnybodys(frame);
}

}  // namespace caisson::api
