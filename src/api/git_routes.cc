#include "api/git_routes.h"

#include <array>

#include "api/github_codec.h"
#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::GitDesk;
using work::IntOf;
using work::TextOf;
using work::TextsOf;
using work::TrueIn;

// The sandbox is named by the path, or in the body (`/api/v1/git/clone`).
GitDesk::Place PlaceOf(const Call& call) {
  auto in_path = call.params.find("id");
  std::string id = in_path != call.params.end() ? in_path->second : TextOf(call.body, "sandbox_id");
  std::string repo = TextOf(call.body, "repo");
  return {.owner_id = call.who.admin() ? "" : call.who.user_id,
          .sandbox_id = std::move(id),
          .repo = repo.empty() ? TextParameter(call, "repo") : repo};
}

json::array Names(const std::vector<std::string>& names) {
  return json::array(names.begin(), names.end());
}

Answer Clone(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto done,
                co_await desk.Clone(PlaceOf(call), TextOf(call.body, "repo_url"),
                                    TextOf(call.body, "branch"), IntOf(call.body, "depth")));
  co_return http::Response::Json(200, json::object{{"path", done.path},
                                                   {"head_sha", done.head_sha},
                                                   {"branch", done.branch},
                                                   {"cloned", done.cloned},
                                                   {"uses_lfs", done.uses_lfs}});
}

Answer Branch(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto done, co_await desk.Branch(PlaceOf(call), TextOf(call.body, "name"),
                                                TextOf(call.body, "base")));
  co_return http::Response::Json(
      200, json::object{
               {"branch", done.branch}, {"base_sha", done.base_sha}, {"created", done.created}});
}

Answer Stage(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto staged, co_await desk.Stage(PlaceOf(call), TextsOf(call.body, "patterns")));
  co_return http::Response::Json(200, json::object{{"staged", Names(staged)}});
}

Answer Commit(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto done, co_await desk.Commit(PlaceOf(call),
                                                {.message = TextOf(call.body, "message"),
                                                 .author_name = TextOf(call.body, "author_name"),
                                                 .author_email = TextOf(call.body, "author_email"),
                                                 .stage_all = !call.body.contains("stage_all") ||
                                                              TrueIn(call.body, "stage_all")}));
  co_return http::Response::Json(
      200,
      json::object{{"sha", done.sha}, {"committed", done.committed}, {"files", Names(done.files)}});
}

Answer Push(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto done, co_await desk.Push(PlaceOf(call), TextOf(call.body, "branch")));
  co_return http::Response::Json(200, json::object{{"branch", done.branch}, {"sha", done.sha}});
}

Answer Pull(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto done, co_await desk.Pull(PlaceOf(call), TrueIn(call.body, "rebase")));
  co_return http::Response::Json(
      200, json::object{{"head_sha", done.head_sha}, {"conflicts", Names(done.conflicts)}});
}

Answer Tag(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto sha, co_await desk.Tag(PlaceOf(call), TextOf(call.body, "name"),
                                            TextOf(call.body, "message")));
  co_return http::Response::Json(200,
                                 json::object{{"name", TextOf(call.body, "name")}, {"sha", sha}});
}

Answer OpenPullRequest(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto made, AsOurs(co_await desk.OpenPullRequest(
                               PlaceOf(call), {.title = TextOf(call.body, "title"),
                                               .body = TextOf(call.body, "body"),
                                               .base = TextOf(call.body, "base"),
                                               .draft = TrueIn(call.body, "draft"),
                                               .labels = TextsOf(call.body, "labels"),
                                               .reviewers = TextsOf(call.body, "reviewers")})));
  const forge::PullRequest& pull = made.pull_request;
  co_return http::Response::Json(made.created ? 201 : 200, json::object{{"number", pull.number},
                                                                        {"url", pull.url},
                                                                        {"state", pull.state},
                                                                        {"draft", pull.draft},
                                                                        {"created", made.created}});
}

Answer ShowStatus(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto status, co_await desk.Status(PlaceOf(call)));
  co_return http::Response::Json(200, json::object{{"current_branch", status.branch},
                                                   {"head_sha", status.head_sha},
                                                   {"ahead", status.ahead},
                                                   {"behind", status.behind},
                                                   {"staged", Names(status.staged)},
                                                   {"modified", Names(status.modified)},
                                                   {"untracked", Names(status.untracked)},
                                                   {"conflicted", Names(status.conflicted)},
                                                   {"clean", status.clean()}});
}

Answer ShowDiff(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(auto diff, co_await desk.Diff(PlaceOf(call), TextParameter(call, "base"),
                                              TextParameters(call, "file")));
  json::array files;
  for (const git::DiffFile& file : diff.files) {
    json::object one{{"path", file.path},
                     {"added", file.added},
                     {"removed", file.removed},
                     {"binary", file.binary}};
    if (!file.old_path.empty()) one["old_path"] = file.old_path;
    files.push_back(std::move(one));
  }
  co_return http::Response::Json(
      200, json::object{
               {"diff", diff.text}, {"truncated", diff.truncated}, {"files", std::move(files)}});
}

Answer ShowHistory(GitDesk& desk, Call& call) {
  CO_TRY_ASSIGN(
      auto commits,
      co_await desk.History(PlaceOf(call), static_cast<int>(NumberParameter(call, "limit", 20))));
  json::array list;
  for (const git::CommitInfo& commit : commits)
    list.push_back(json::object{{"sha", commit.sha},
                                {"message", commit.message},
                                {"author", commit.author},
                                {"email", commit.email},
                                {"date", commit.date}});
  co_return http::Response::Json(200, json::object{{"commits", std::move(list)}});
}

// One operation: `fields` are the properties of its body, `answer` those of its answer.
struct Entry {
  std::string_view method, name, id, summary;
  Answer (*handler)(GitDesk&, Call&);
  std::string_view request;  // the name of its schema, "" = no body
  std::string_view schema;   // of that
  std::string_view answer;   // the name of the schema of its answer
};

constexpr std::array kEntries = {
    Entry{"POST", "clone", "gitClone",
          "Clones a repository; one that is there is brought up to date", &Clone, "GitCloneRequest",
          R"("repo_url":{"type":"string","minLength":1},"branch":{"type":"string"},
             "depth":{"type":"integer","minimum":0,"maximum":1000000}},"required":["repo_url"])",
          "GitClone"},
    Entry{"POST", "branch", "gitBranch", "Makes a branch, or checks out the one that is there",
          &Branch, "GitBranchRequest", R"("name":{"type":"string"},"base":{"type":"string"}})",
          "GitBranch"},
    Entry{"POST", "stage", "gitStage", "Stages changes, all if no pattern is given", &Stage,
          "GitStageRequest", R"("patterns":{"type":"array","items":{"type":"string"}}})",
          "GitStaged"},
    Entry{"POST", "commit", "gitCommit", "Commits with a conventional message", &Commit,
          "GitCommitRequest",
          R"("message":{"type":"string"},"author_name":{"type":"string"},
             "author_email":{"type":"string"},"stage_all":{"type":"boolean"}},
             "required":["message"])",
          "GitCommit"},
    Entry{"POST", "push", "gitPush", "Pushes a branch", &Push, "GitPushRequest",
          R"("branch":{"type":"string"}})", "GitPush"},
    Entry{"POST", "pull", "gitPull", "Takes over what is new; conflicts are listed and undone",
          &Pull, "GitPullRequest", R"("rebase":{"type":"boolean"}})", "GitPull"},
    Entry{"POST", "tag", "gitTag", "Names the commit that is checked out", &Tag, "GitTagRequest",
          R"("name":{"type":"string","minLength":1},"message":{"type":"string"}},
             "required":["name"])",
          "GitTag"},
    Entry{"POST", "pr", "gitOpenPullRequest", "Opens a pull request, or finds the open one",
          &OpenPullRequest, "GitPrRequest",
          R"("title":{"type":"string"},"body":{"type":"string"},"base":{"type":"string"},
             "draft":{"type":"boolean"},"labels":{"type":"array","items":{"type":"string"}},
             "reviewers":{"type":"array","items":{"type":"string"}}})",
          "GitPr"},
    Entry{"GET", "status", "gitStatus", "What is changed", &ShowStatus, "", "", "GitStatus"},
    Entry{"GET", "diff", "gitDiff", "The changes as a unified diff, and by file", &ShowDiff, "", "",
          "GitDiff"},
    Entry{"GET", "history", "gitHistory", "The newest commits", &ShowHistory, "", "", "GitHistory"},
};

void AddSchemas(Frame& frame) {
  for (const Entry& entry : kEntries)
    if (!entry.request.empty())
      frame.AddSchema(entry.request,
                      fmt::format(R"({{"type":"object","additionalProperties":false,"properties":{{
            "repo":{{"type":"string"}},"sandbox_id":{{"type":"string"}},{}}})",
                                  entry.schema));
  constexpr std::string_view kNames = R"({"type":"array","items":{"type":"string"}})";
  auto add = [&](std::string_view name, std::vector<std::pair<const char*, const char*>> fields) {
    json::object properties;
    json::array required;
    for (const auto& [field, type] : fields) {
      properties[field] = std::string_view(type) == "names"
                              ? json::parse(kNames)
                              : json::value(json::object{{"type", type}});
      required.emplace_back(field);
    }
    frame.AddSchema(name, json::serialize(json::object{{"type", "object"},
                                                       {"properties", std::move(properties)},
                                                       {"required", std::move(required)}}));
  };
  add("GitClone",
      {{"path", "string"}, {"head_sha", "string"}, {"branch", "string"}, {"cloned", "boolean"}});
  add("GitBranch", {{"branch", "string"}, {"base_sha", "string"}, {"created", "boolean"}});
  add("GitStaged", {{"staged", "names"}});
  add("GitCommit", {{"sha", "string"}, {"committed", "boolean"}, {"files", "names"}});
  add("GitPush", {{"branch", "string"}, {"sha", "string"}});
  add("GitPull", {{"head_sha", "string"}, {"conflicts", "names"}});
  add("GitTag", {{"name", "string"}, {"sha", "string"}});
  add("GitPr",
      {{"number", "integer"}, {"url", "string"}, {"state", "string"}, {"created", "boolean"}});
  add("GitStatus", {{"current_branch", "string"},
                    {"head_sha", "string"},
                    {"staged", "names"},
                    {"modified", "names"},
                    {"untracked", "names"},
                    {"conflicted", "names"},
                    {"clean", "boolean"}});
  add("GitDiff", {{"diff", "string"}, {"truncated", "boolean"}, {"files", "array"}});
  add("GitHistory", {{"commits", "array"}});
}

std::vector<Parameter> ParametersOf(const Entry& entry) {
  std::vector<Parameter> list = {
      {.name = "repo", .description = "which one, if there are several"}};
  if (entry.name == "diff") {
    list.push_back({.name = "base", .description = "against this; HEAD if it is not given"});
    list.push_back({.name = "file", .description = "only these", .repeated = true});
  }
  if (entry.name == "history")
    list.push_back({.name = "limit", .type = "integer", .min = 1, .max = 200});
  return list;
}

}  // namespace

void AddGitRoutes(Frame& frame, GitDesk& desk) {
  AddSchemas(frame);
  for (const Entry& entry : kEntries) {
    std::string pattern = fmt::format("/api/v1/sandboxes/{{id}}/git/{}", entry.name);
    std::map<int, std::string_view> responses = {{200, entry.answer}, {409, "Error"}};
    if (entry.name == "pr") responses[201] = entry.answer;
    frame.Add(
        {.method = entry.method,
         .pattern = pattern,
         .tag = "git",
         .id = entry.id,
         .summary = entry.summary,
         .access = entry.method == "GET" ? Access::kViewer : Access::kMember,
         .parameters = entry.method == "GET" ? ParametersOf(entry) : std::vector<Parameter>(),
         .request = entry.request,
         .body_optional = entry.name == "branch" || entry.name == "stage" || entry.name == "push" ||
                          entry.name == "pull" || entry.name == "pr",
         .responses = std::move(responses),
         .handler = [&desk, handler = entry.handler](Call& call) { return handler(desk, call); }});
  }
  for (const char* name : {"clone", "branch", "commit", "push", "pr"})
    frame.AddAlias("POST", fmt::format("/api/v1/sandboxes/{{id}}/{}", name),
                   fmt::format("/api/v1/sandboxes/{{id}}/git/{}", name));
  for (const char* name : {"clone", "branch", "commit", "push"})
    frame.AddAlias("POST", fmt::format("/api/v1/git/{}", name),
                   fmt::format("/api/v1/sandboxes/{{id}}/git/{}", name));
  frame.AddAlias("GET", "/api/v1/git/{id}/history", "/api/v1/sandboxes/{id}/git/history");
}

}  // namespace caisson::api
