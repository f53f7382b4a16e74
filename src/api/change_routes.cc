#include "api/change_routes.h"

#include <boost/json.hpp>

namespace caisson::api {
namespace {

constexpr std::string_view kChanges = R"({"type":"object",
  "required":["source","base_sha","head_sha","branch","files","patch","truncated"],"properties":{
  "source":{"type":"string","enum":["sandbox","stored","none"],
    "description":"what is in the sandbox now; what was kept at the commit; nothing yet"},
  "base_sha":{"type":"string"},"head_sha":{"type":"string"},"branch":{"type":"string"},
  "files":{"type":"array","items":{"type":"object","properties":{
    "path":{"type":"string"},"old_path":{"type":"string","description":"of a renamed one"},
    "status":{"type":"string","enum":["added","modified","deleted","renamed"]},
    "additions":{"type":"integer"},"deletions":{"type":"integer"},
    "binary":{"type":"boolean"}}}},
  "patch":{"type":"string","description":"a unified diff"},
  "truncated":{"type":"boolean","description":"there is more than is shown"}}})";

Answer Get(work::Changes& changes, Call& call) {
  bool since_commit = call.query.Get("against").value_or("base") == "last";
  CO_TRY_ASSIGN(auto found,
                co_await changes.Of(call.who.user_id, call.params.at("id"), since_commit));
  co_return http::Response::Json(200, Encode(found));
}

constexpr std::string_view kGitContext = R"({"type":"object",
  "required":["repo_url","base_branch","current_branch","last_commit_sha","last_commit_message",
    "uncommitted_changes"],"properties":{
  "repo_url":{"type":"string"},"base_branch":{"type":"string"},
  "current_branch":{"type":"string"},"last_commit_sha":{"type":"string"},
  "last_commit_message":{"type":"string","description":"empty if it is not one of the task's"},
  "uncommitted_changes":{"type":["integer","null"],
    "description":"files; null while nobody can tell: nothing is cloned yet, or the sandbox sleeps"}}})";

Answer GetContext(work::Changes& changes, Call& call) {
  CO_TRY_ASSIGN(auto found, co_await changes.ContextOf(call.who.user_id, call.params.at("id")));
  json::object body{{"repo_url", found.repo_url},
                    {"base_branch", found.base_branch},
                    {"current_branch", found.current_branch},
                    {"last_commit_sha", found.last_commit_sha},
                    {"last_commit_message", found.last_commit_message},
                    {"uncommitted_changes", nullptr}};
  if (found.uncommitted_changes) body["uncommitted_changes"] = *found.uncommitted_changes;
  co_return http::Response::Json(200, body);
}

}  // namespace

json::object Encode(const work::TaskChanges& changes) {
  return {{"source", changes.source},      {"base_sha", changes.base_sha},
          {"head_sha", changes.head_sha},  {"branch", changes.branch},
          {"files", changes.files},        {"patch", changes.patch},
          {"truncated", changes.truncated}};
}

void AddChangeRoutes(Frame& frame, work::Changes& changes) {
  frame.AddSchema("TaskChanges", kChanges);
  frame.Add(
      {.method = "GET",
       .pattern = "/api/v1/tasks/{id}/changes",
       .tag = "tasks",
       .id = "getTaskChanges",
       .summary = "What a task has changed, while it is worked on and afterwards",
       .access = Access::kViewer,
       .parameters = {{.name = "against",
                       .description = "base (if not said), or last: what the sandbox has that "
                                      "is not committed",
                       .values = {"base", "last"}}},
       .responses = {{200, "TaskChanges"}},
       .handler = [&changes](Call& call) { return Get(changes, call); }});
  frame.AddSchema("GitContext", kGitContext);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}/git",
             .tag = "tasks",
             .id = "getTaskGit",
             .summary = "Where the work of a task stands in git",
             .access = Access::kViewer,
             .responses = {{200, "GitContext"}},
             .handler = [&changes](Call& call) { return GetContext(changes, call); }});
}

}  // namespace caisson::api
