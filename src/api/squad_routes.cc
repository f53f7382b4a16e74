#include "api/squad_routes.h"

#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::TextOf;
using work::Work;

constexpr std::string_view kSquad = R"({"type":"object","properties":{
  "id":{"type":"string"},"owner_id":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},
  "repo_url":{"type":"string"},"paused":{"type":"boolean"},
  "paused_at":{"type":["string","null"],"format":"date-time"},
  "members":{"type":"array","items":{"type":"object","properties":{
    "agent_id":{"type":"string"},"name":{"type":"string"},"role":{"type":"string"},
    "status":{"type":"string"},"current_task_id":{"type":["string","null"]},
    "sandbox_id":{"type":"string","description":"where it works on that task; empty if nowhere"},
    "git_context":{"type":["object","null"],"description":"of its current task; null if it has none",
      "properties":{"repo_url":{"type":"string"},
      "base_branch":{"type":"string","description":"empty: the repository's default"},
      "git_branch":{"type":"string","description":"empty until the branch is made"},
      "pull_request_url":{"type":"string"}}}}}},
  "created_at":{"type":"string","format":"date-time"},
  "updated_at":{"type":"string","format":"date-time"}}})";
constexpr std::string_view kNewSquad = R"({"type":"object","required":["name"],"properties":{
  "name":{"type":"string","minLength":1,"maxLength":100},
  "description":{"type":"string","maxLength":10000},
  "repo_url":{"type":"string","maxLength":2000,"description":"the default of its tasks"},
  "members":{"type":"array","maxItems":100,"items":{"type":"object","required":["agent_id"],
    "properties":{"agent_id":{"type":"string","maxLength":100},
    "role":{"type":"string","maxLength":100}}}}}})";
constexpr std::string_view kSquadChange = R"({"type":"object","properties":{
  "name":{"type":"string","minLength":1,"maxLength":100},
  "description":{"type":"string","maxLength":10000},
  "repo_url":{"type":"string","maxLength":2000},
  "members":{"type":"array","maxItems":100,"description":"all of them",
    "items":{"type":"object","required":["agent_id"],
    "properties":{"agent_id":{"type":"string","maxLength":100},
    "role":{"type":"string","maxLength":100}}}}}})";

std::vector<work::NewMember> ReadMembers(const json::object& body) {
  std::vector<work::NewMember> members;
  for (const json::value& item : work::ArrayIn(body, "members"))
    if (item.is_object())
      members.push_back({TextOf(item.as_object(), "agent_id"), TextOf(item.as_object(), "role")});
  return members;
}

Answer Create(Work& work, Call& call) {
  work::NewSquad squad{.id = call.new_id,
                       .name = TextOf(call.body, "name"),
                       .description = TextOf(call.body, "description"),
                       .repo_url = TextOf(call.body, "repo_url"),
                       .members = ReadMembers(call.body)};
  CO_TRY_ASSIGN(auto made, co_await work.squads.Create(call.who.user_id, squad));
  call.target = made.row.id;
  co_return http::Response::Json(201, Encode(made));
}

Answer List(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto listed, co_await work.squads.List(call.owner(), PageOf(call)));
  co_return ListResponse("squads", listed);
}

Answer Get(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto squad, co_await work.squads.Get(call.who.user_id, call.params.at("id")));
  co_return http::Response::Json(200, Encode(squad));
}

Answer Update(Work& work, Call& call) {
  work::SquadChange change{.name = OptionalText(call.body, "name"),
                           .description = OptionalText(call.body, "description"),
                           .repo_url = OptionalText(call.body, "repo_url")};
  if (call.body.contains("members")) change.members = ReadMembers(call.body);
  CO_TRY_ASSIGN(auto squad,
                co_await work.squads.Update(call.who.user_id, call.params.at("id"), change));
  co_return http::Response::Json(200, Encode(squad));
}

Answer Delete(Work& work, Call& call) {
  CO_TRY(co_await work.squads.Delete(call.who.user_id, call.params.at("id")));
  co_return http::Response::Empty(204);
}

Answer Pause(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto squad, co_await work.squads.Pause(call.who.user_id, call.params.at("id")));
  co_return http::Response::Json(200, Encode(squad));
}

Answer Resume(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto squad, co_await work.squads.Resume(call.who.user_id, call.params.at("id")));
  co_return http::Response::Json(200, Encode(squad));
}

}  // namespace

void AddSquadRoutes(Frame& frame, Work& work) {
  frame.AddSchema("Squad", kSquad);
  frame.AddSchema("SquadList", ListSchema("squads", "Squad"));
  frame.AddSchema("NewSquad", kNewSquad);
  frame.AddSchema("SquadChange", kSquadChange);
  frame.Add({.method = "POST",
             .pattern = "/api/v1/squads",
             .tag = "squads",
             .id = "createSquad",
             .summary = "Make a squad of agents",
             .request = "NewSquad",
             .responses = {{201, "Squad"}},
             .handler = Bind(work, Create)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/squads",
             .tag = "squads",
             .id = "listSquads",
             .summary = "Your squads, oldest first",
             .access = Access::kViewer,
             .parameters = WithPage({kAllParameter}),
             .responses = {{200, "SquadList"}},
             .handler = Bind(work, List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/squads/{id}",
             .tag = "squads",
             .id = "getSquad",
             .summary = "One squad with its members",
             .access = Access::kViewer,
             .responses = {{200, "Squad"}},
             .handler = Bind(work, Get)});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/squads/{id}",
             .tag = "squads",
             .id = "updateSquad",
             .summary = "Change a squad",
             .request = "SquadChange",
             .responses = {{200, "Squad"}},
             .handler = Bind(work, Update)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/squads/{id}",
             .tag = "squads",
             .id = "deleteSquad",
             .summary = "Delete a squad; its agents and tasks stay",
             .responses = {{204, ""}, {409, "Error"}},
             .handler = Bind(work, Delete)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/squads/{id}/pause",
             .tag = "squads",
             .id = "pauseSquad",
             .summary = "Stop its work before the next step, and start nothing new",
             .responses = {{200, "Squad"}},
             .handler = Bind(work, Pause)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/squads/{id}/resume",
             .tag = "squads",
             .id = "resumeSquad",
             .summary = "Go on",
             .responses = {{200, "Squad"}},
             .handler = Bind(work, Resume)});
}

}  // namespace caisson::api
