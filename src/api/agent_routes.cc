#include "api/agent_routes.h"

#include "api/task_requests.h"
#include "api/work_codec.h"
#include "work/agent_config.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::IntOf;
using work::NumberOf;
using work::ObjectIn;
using work::TextOf;
using work::Work;

constexpr std::string_view kAgent = R"({"type":"object","properties":{
  "id":{"type":"string"},"owner_id":{"type":"string"},"name":{"type":"string"},"role":{"type":"string"},
  "status":{"type":"string","enum":["idle","initializing","cloning","working","committing",
    "pushing","completed","error","paused"]},
  "adapter":{"type":"string"},"config":{"type":"object"},
  "current_task_id":{"type":["string","null"]},"sandbox_id":{"type":"string"},
  "avatar_url":{"type":"string"},"created_at":{"type":"string","format":"date-time"},
  "updated_at":{"type":"string","format":"date-time"},
  "heartbeat_at":{"type":["string","null"],"format":"date-time"}}})";
constexpr std::string_view kNewAgent = R"({"type":"object","required":["name"],"properties":{
  "name":{"type":"string","minLength":1,"maxLength":100},
  "role":{"type":"string","maxLength":100,"description":"a word of your own; developer if not said"},
  "adapter":{"type":"string","enum":["command","claude","codex","opencode","gemini","aider",
    "builtin","external"]},
  "config":{"type":"object","description":"by the adapter; see docs/agents.md"},
  "avatar_url":{"type":"string","maxLength":2000}}})";
constexpr std::string_view kAgentChange = R"({"type":"object","properties":{
  "name":{"type":"string","minLength":1,"maxLength":100},"role":{"type":"string","maxLength":100},
  "adapter":{"type":"string","enum":["command","claude","codex","opencode","gemini","aider",
    "builtin","external"]},
  "config":{"type":"object"},"avatar_url":{"type":"string","maxLength":2000},
  "paused":{"type":"boolean","description":"a paused agent gets no tasks"}}})";
constexpr std::string_view kClaim = R"({"type":"object","properties":{
  "wait_s":{"type":"integer","minimum":0,"maximum":60,
    "description":"how long to wait for a task; 30 if it is not said"}}})";
constexpr std::string_view kClaimed = R"({"type":"object","properties":{
  "task":{"$ref":"#/components/schemas/Task"},
  "execution":{"$ref":"#/components/schemas/Execution"}}})";
constexpr std::string_view kReport = R"({"type":"object","required":["execution_id","status"],
  "properties":{"execution_id":{"type":"string","maxLength":100},
  "status":{"type":"string","enum":["succeeded","failed"]},
  "summary":{"type":"string","maxLength":10000},"branch":{"type":"string","maxLength":200},
  "pull_request_url":{"type":"string","maxLength":2000},
  "usage":{"type":"object","properties":{"model":{"type":"string","maxLength":200},
    "tokens_in":{"type":"integer","minimum":0},"tokens_out":{"type":"integer","minimum":0},
    "dollars":{"type":"number","minimum":0}}}}})";

Answer Create(Work& work, Call& call) {
  work::NewAgent agent{.id = call.new_id,
                       .name = TextOf(call.body, "name"),
                       .config = ObjectIn(call.body, "config"),
                       .avatar_url = TextOf(call.body, "avatar_url")};
  if (auto role = OptionalText(call.body, "role")) agent.role = *role;
  if (auto adapter = OptionalText(call.body, "adapter")) agent.adapter = *adapter;
  CO_TRY_ASSIGN(auto row, co_await work.agents.Create(call.who.user_id, agent));
  call.target = row.id;
  co_return http::Response::Json(201, Encode(row));
}

Answer List(Work& work, Call& call) {
  work::AgentFilter filter{.status = TextParameter(call, "status"),
                           .adapter = TextParameter(call, "adapter"),
                           .squad_id = TextParameter(call, "squad_id"),
                           .text = TextParameter(call, "text"),
                           .page = PageOf(call)};
  CO_TRY_ASSIGN(auto listed, co_await work.agents.List(call.owner(), filter));
  co_return ListResponse("agents", listed);
}

Answer Get(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto row, co_await work.agents.Get(call.who.user_id, call.params.at("id")));
  co_return http::Response::Json(200, Encode(row));
}

Answer Update(Work& work, Call& call) {
  work::AgentChange change{.name = OptionalText(call.body, "name"),
                           .role = OptionalText(call.body, "role"),
                           .adapter = OptionalText(call.body, "adapter"),
                           .avatar_url = OptionalText(call.body, "avatar_url")};
  if (call.body.contains("config")) change.config = ObjectIn(call.body, "config");
  if (const auto* paused = call.body.if_contains("paused")) change.paused = paused->as_bool();
  CO_TRY_ASSIGN(auto row,
                co_await work.agents.Update(call.who.user_id, call.params.at("id"), change));
  co_return http::Response::Json(200, Encode(row));
}

Answer Delete(Work& work, Call& call) {
  CO_TRY(co_await work.agents.Delete(call.who.user_id, call.params.at("id")));
  co_return http::Response::Empty(204);
}

// With a task's id that task is started, with a text a new one.
Answer StartTask(Work& work, Call& call) {
  std::string agent_id = call.params.at("id");
  std::string task_id = TextOf(call.body, "task_id");
  bool when_free = TextOf(call.body, "when") == "free";
  if (task_id.empty()) {
    work::NewTask task = ReadNewTask(call.body);
    task.id = call.new_id;
    task.agent_id = agent_id;
    CO_TRY_ASSIGN(auto started,
                  co_await work.tasks.CreateAndStart(call.who.user_id, task, when_free));
    call.target = started.task_id;
    co_return http::Response::Json(202, Encode(started));
  }
  call.target = task_id;
  CO_TRY_ASSIGN(auto started, co_await work.tasks.Start({.owner_id = call.who.user_id,
                                                         .task_id = task_id,
                                                         .agent_id = agent_id,
                                                         .feedback = TextOf(call.body, "feedback"),
                                                         .execution_id = call.new_id,
                                                         .when_free = when_free}));
  co_return http::Response::Json(202, Encode(started));
}

Answer Claim(Work& work, Call& call) {
  int64_t wait_s = call.body.contains("wait_s") ? IntOf(call.body, "wait_s") : 30;
  CO_TRY_ASSIGN(auto claimed,
                co_await work.outside_agents.Claim(call.who.user_id, call.params.at("id"),
                                                   std::chrono::seconds(wait_s)));
  if (!claimed) co_return http::Response::Empty(204);
  call.target = claimed->task.id;
  co_return http::Response::Json(
      200, json::object{{"task", Encode(work::TaskView{.row = claimed->task})},
                        {"execution", Encode(claimed->execution)}});
}

Answer Heartbeat(Work& work, Call& call) {
  CO_TRY(co_await work.outside_agents.Heartbeat(call.who.user_id, call.params.at("id")));
  co_return http::Response::Empty(204);
}

Answer Report(Work& work, Call& call) {
  const json::object& usage = ObjectIn(call.body, "usage");
  work::Report report{.execution_id = TextOf(call.body, "execution_id"),
                      .status = TextOf(call.body, "status"),
                      .summary = TextOf(call.body, "summary"),
                      .branch = TextOf(call.body, "branch"),
                      .pull_request_url = TextOf(call.body, "pull_request_url"),
                      .model = TextOf(usage, "model"),
                      .tokens_in = IntOf(usage, "tokens_in"),
                      .tokens_out = IntOf(usage, "tokens_out"),
                      .dollars = NumberOf(usage, "dollars")};
  call.target = report.execution_id;
  CO_TRY_ASSIGN(auto execution, co_await work.outside_agents.Finish(call.who.user_id,
                                                                    call.params.at("id"), report));
  co_return http::Response::Json(200, Encode(execution));
}

void AddOutside(Frame& frame, Work& work) {
  frame.AddSchema("Claim", kClaim);
  frame.AddSchema("Claimed", kClaimed);
  frame.AddSchema("Report", kReport);
  frame.Add({.method = "POST",
             .pattern = "/api/v1/agents/{id}/claim",
             .tag = "agents",
             .id = "claimTask",
             .summary = "An outside agent asks for a task, and waits for one",
             .request = "Claim",
             .body_optional = true,
             .responses = {{200, "Claimed"}, {204, ""}, {409, "Error"}},
             .handler = Bind(work, Claim)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/agents/{id}/heartbeat",
             .tag = "agents",
             .id = "agentHeartbeat",
             .summary = "An outside agent tells that it is alive",
             .responses = {{204, ""}, {409, "Error"}},
             .handler = Bind(work, Heartbeat)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/agents/{id}/report",
             .tag = "agents",
             .id = "reportTask",
             .summary = "An outside agent tells what became of its task",
             .request = "Report",
             .responses = {{200, "Execution"}, {409, "Error"}},
             .handler = Bind(work, Report)});
}

}  // namespace

void AddAgentRoutes(Frame& frame, Work& work) {
  frame.AddSchema("Agent", kAgent);
  frame.AddSchema("AgentList", ListSchema("agents", "Agent"));
  frame.AddSchema("NewAgent", kNewAgent);
  frame.AddSchema("AgentChange", kAgentChange);
  frame.Add({.method = "POST",
             .pattern = "/api/v1/agents",
             .tag = "agents",
             .id = "createAgent",
             .summary = "Make an agent",
             .request = "NewAgent",
             .responses = {{201, "Agent"}},
             .handler = Bind(work, Create)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/agents",
             .tag = "agents",
             .id = "listAgents",
             .summary = "Your agents, oldest first",
             .access = Access::kViewer,
             .parameters = WithPage(
                 {{.name = "status", .description = "only those"},
                  {.name = "adapter", .description = "only those", .values = work::AdapterNames()},
                  {.name = "squad_id", .description = "members of this squad"},
                  {.name = "text", .description = "part of the name"},
                  kAllParameter}),
             .responses = {{200, "AgentList"}},
             .handler = Bind(work, List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/agents/{id}",
             .tag = "agents",
             .id = "getAgent",
             .summary = "One agent",
             .access = Access::kViewer,
             .responses = {{200, "Agent"}},
             .handler = Bind(work, Get)});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/agents/{id}",
             .tag = "agents",
             .id = "updateAgent",
             .summary = "Change an agent",
             .request = "AgentChange",
             .responses = {{200, "Agent"}, {409, "Error"}},
             .handler = Bind(work, Update)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/agents/{id}",
             .tag = "agents",
             .id = "deleteAgent",
             .summary = "Delete an agent that does not work",
             .responses = {{204, ""}, {409, "Error"}},
             .handler = Bind(work, Delete)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/agents/{id}/start-task",
             .tag = "agents",
             .id = "startTaskWithAgent",
             .summary = "Give an agent a task, by its id or by its text, and start it",
             .request = "StartWithAgent",
             .responses = {{202, "Started"}, {409, "Error"}},
             .handler = Bind(work, StartTask)});
  AddOutside(frame, work);
}

}  // namespace caisson::api
