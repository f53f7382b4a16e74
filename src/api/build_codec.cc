#include "api/build_codec.h"

#include "api/fields.h"
#include "api/work_codec.h"
#include "build/event.h"
#include "build/state.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::TextOf;

constexpr std::string_view kBuild = R"({"type":"object","properties":{
  "id":{"type":"string"},"project":{"type":"string"},"goal":{"type":"string"},
  "type":{"type":"string","enum":["first","iteration","rollback"]},
  "runner":{"type":"string"},"parent_id":{"type":["string","null"]},"run_id":{"type":"string"},
  "correlation_id":{"type":"string"},
  "state":{"type":"string","enum":["queued","scheduled","starting","scaffold","code","deps",
    "checks","ready","failed"]},
  "stage_label":{"type":"string"},"options":{"type":"object"},
  "build_version":{"type":["string","null"]},
  "predicted_version":{"type":["string","null"],
    "description":"what build_version will be if no other build of the project is ready before"},
  "sandbox_id":{"type":["string","null"]},"workspace_path":{"type":"string"},
  "framework":{"type":"string"},"start_command":{"type":"string"},
  "preview_url":{"type":["string","null"]},
  "preview_state":{"type":"string","enum":["checking","loading","active","blocked","expired",
    "error","paused","resuming","resume_failed"]},
  "services":{"type":"object","additionalProperties":{"type":"object","properties":{
    "port":{"type":"integer"},"url":{"type":"string"}}}},
  "sandbox_expires_at":{"type":["string","null"],"format":"date-time"},
  "sandbox_paused":{"type":"boolean"},"snapshot_id":{"type":["string","null"]},
  "snapshot_url":{"type":["string","null"]},
  "docs_ready":{"type":"boolean","description":"its documentation can be had, as every version's can"},
  "error_category":{"type":["string","null"]},"error_message":{"type":["string","null"]},
  "error_summary":{"type":["string","null"]},"debug_id":{"type":["string","null"]},
  "restored_version_of":{"type":["string","null"]},"needs_review":{"type":"boolean"},
  "tier":{"type":"string"},"position":{"type":"integer"},
  "estimated_wait_s":{"type":"integer"},
  "usage":{"type":"object","properties":{"tier":{"type":"string"},
    "jobs_used":{"type":"integer"},"jobs_remaining":{"type":["integer","null"]},
    "iterations_used":{"type":"integer"},"iterations_remaining":{"type":["integer","null"]},
    "daily_limit_resets_at":{"type":"string","format":"date-time"}}},
  "enqueued_at":{"type":"string","format":"date-time"},
  "scheduled_for":{"type":["string","null"],"format":"date-time"},
  "started_at":{"type":["string","null"],"format":"date-time"},
  "completed_at":{"type":["string","null"],"format":"date-time"},
  "viewed_at":{"type":["string","null"],"format":"date-time"},
  "duration_seconds":{"type":["number","null"]}}})";

constexpr std::string_view kNewBuild = R"({"type":"object","required":["project"],"properties":{
  "project":{"type":"string","minLength":1,"maxLength":100,"pattern":"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
    "description":"a name of yours; versions count per project"},
  "goal":{"type":"string","maxLength":10000,"description":"what shall be built, or changed"},
  "files":{"type":["object","array"],"additionalProperties":true,
    "description":"path -> content, or a list of changes: path with new_content, new_content_base64 or delete: true; instead of a goal"},
  "runner":{"type":"string","enum":["command","llm","files"]},
  "parent_id":{"type":"string","maxLength":100,"description":"the build to go on from"},
  "agent_id":{"type":"string","maxLength":100,"description":"of the runner command"},
  "template":{"type":"string","maxLength":200},
  "install_command":{"type":"string","maxLength":2000},
  "checks":{"type":"array","maxItems":20,"items":{"type":"string","maxLength":2000}},
  "start_command":{"type":"string","maxLength":2000},
  "port":{"type":"integer","minimum":1,"maximum":65535},
  "max_fixes":{"type":"integer","minimum":0,"maximum":5,"default":2,
    "description":"how often the runner may mend what the checks find"},
  "env":{"type":"object","maxProperties":100,"additionalProperties":{"type":"string"}}}})";

constexpr std::string_view kTimeline = R"({"type":"object","properties":{
  "columns":{"type":"array","items":{"type":"object","properties":{
    "id":{"type":"string","enum":["waiting","running","ready","failed"]},
    "title":{"type":"string"},"states":{"type":"array","items":{"type":"string"}},
    "count":{"type":"integer","description":"of all that match"},
    "builds":{"type":"array","description":"the newest of them",
      "items":{"$ref":"#/components/schemas/Build"}}}}},
  "total":{"type":"integer"}}})";

constexpr std::string_view kIssue = R"({"type":"object","properties":{
  "code":{"type":"string"},"message":{"type":"string"},"path":{"type":["string","null"]},
  "line":{"type":["integer","null"]}}})";

constexpr std::string_view kReadiness = R"({"type":"object","properties":{
  "ready":{"type":"boolean"},
  "blocking_issues":{"type":"array","items":{"$ref":"#/components/schemas/BuildIssue"}},
  "warnings":{"type":"array","items":{"$ref":"#/components/schemas/BuildIssue"}},
  "recommended_path":{"type":"object","properties":{
    "target":{"type":"string","enum":["static","node","python","binary","container"]},
    "install":{"type":"array","items":{"type":"string"}},"build":{"type":["string","null"]},
    "start":{"type":["string","null"]},"directory":{"type":["string","null"]}}}}})";

constexpr std::string_view kChangeRequest = R"({"type":"object","properties":{
  "build_id":{"type":"string"},"parent_id":{"type":"string"},
  "change_description":{"type":"string"},
  "iteration_number":{"type":"integer","minimum":1},
  "tier_limit":{"type":"integer","description":"iterations before a confirmation; 0 = unlimited"},
  "alignment_score":{"type":["number","null"],"minimum":0,"maximum":1},
  "scope_creep_detected":{"type":"boolean"},
  "unrelated_files":{"type":"array","items":{"type":"string"}}}})";

constexpr std::string_view kDocs = R"({"type":"object","properties":{
  "version":{"type":"string"},"overview":{"type":"string"},
  "features":{"type":"array","items":{"type":"string"}},
  "getting_started":{"type":"array","items":{"type":"string"}},
  "faq":{"type":"array","items":{"type":"object","properties":{
    "question":{"type":"string"},"answer":{"type":"string"}}}},
  "changelog":{"type":"array","items":{"type":"object","properties":{
    "version":{"type":"string"},"description":{"type":"string"},
    "at":{"type":"string","format":"date-time"}}}},
  "markdown":{"type":"string","description":"all of it as one text"}}})";

constexpr std::string_view kLine = R"({"type":"object","properties":{
  "id":{"type":"integer"},"ts":{"type":"string","format":"date-time"},
  "source":{"type":"string","enum":["stdout","stderr","system"]},
  "phase":{"type":"string"},"text":{"type":"string"},"raw":{"type":"string"}}})";

json::value OrNull(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}
json::value Remaining(int64_t limit, int64_t used) {
  return limit > 0 ? json::value(std::max<int64_t>(limit - used, 0)) : json::value(nullptr);
}
json::value SecondsBetween(const std::optional<Time>& from, const std::optional<Time>& to) {
  if (!from) return nullptr;
  return std::chrono::duration<double>(to.value_or(Now()) - *from).count();
}

// SECURITY: variables may hold keys that their owner put there; they are set, not shown.
json::object ShownOptions(const std::string& text) {
  json::object options = work::ParseObject(text);
  if (json::value* env = options.if_contains("env"); env && env->is_object())
    for (auto& [name, value] : env->as_object()) value = "***";
  return options;
}

json::array EncodeIssues(const std::vector<build::Issue>& issues) {
  json::array list;
  for (const build::Issue& issue : issues)
    list.push_back({{"code", issue.code},
                    {"message", issue.message},
                    {"path", OrNull(issue.path)},
                    {"line", issue.line > 0 ? json::value(issue.line) : json::value(nullptr)}});
  return list;
}

void AddError(json::object& body, const store::BuildRow& row) {
  body["error_category"] = OrNull(row.error_category);
  body["error_message"] = OrNull(row.error_message);
  body["error_summary"] = OrNull(row.error_summary);
  body["debug_id"] = OrNull(row.debug_id);
  body["restored_version_of"] = OrNull(row.restored_id);
  body["needs_review"] =
      row.state == "failed" && !row.parent_id.empty() && row.error_category != "canceled";
}

void AddPreview(json::object& body, const build::BuildView& view) {
  const store::BuildRow& row = view.row;
  body["preview_url"] = OrNull(row.preview_url);
  body["preview_state"] = view.preview.state;
  body["services"] = json::object();
  if (!row.preview_url.empty())
    body["services"] = {{"preview", {{"port", row.port}, {"url", row.preview_url}}}};
  body["sandbox_expires_at"] = EncodeOptionalTime(row.viewing_until);
  body["sandbox_paused"] = view.preview.paused;
  body["docs_ready"] = row.number > 0;
  body["snapshot_id"] = OrNull(row.snapshot_id);
  body["snapshot_url"] = row.screenshot.empty()
                             ? json::value(nullptr)
                             : json::value("/api/v1/builds/" + row.id + "/screenshot");
}

}  // namespace

json::object Encode(const build::BuildView& view) {
  const store::BuildRow& row = view.row;
  json::object body{{"id", row.id},
                    {"project", row.project},
                    {"goal", row.goal},
                    {"type", build::TypeOf(row)},
                    {"runner", row.runner},
                    {"parent_id", OrNull(row.parent_id)},
                    {"run_id", row.run_id},
                    {"correlation_id", row.correlation_id},
                    {"state", row.state},
                    {"stage_label", build::StageLabel(row.state)},
                    {"options", ShownOptions(row.options)},
                    {"build_version", OrNull(build::VersionName(row.number))},
                    {"predicted_version", OrNull(build::VersionName(view.predicted))},
                    {"sandbox_id", OrNull(row.sandbox_id)},
                    {"workspace_path", row.workspace_path},
                    {"framework", row.framework},
                    {"start_command", row.start_command}};
  AddPreview(body, view);
  AddError(body, row);
  body["tier"] = row.tier;
  body["position"] = view.turn.position;
  body["estimated_wait_s"] = view.turn.wait_s;
  body["usage"] = {{"tier", view.usage.tier},
                   {"jobs_used", view.usage.used},
                   {"jobs_remaining", Remaining(view.usage.limit, view.usage.used)},
                   {"iterations_used", row.iterations_used},
                   {"iterations_remaining", Remaining(view.iterations, row.iterations_used)},
                   {"daily_limit_resets_at", FormatTime(view.usage.resets_at)}};
  body["enqueued_at"] = FormatTime(row.enqueued_at);
  body["scheduled_for"] = EncodeOptionalTime(row.scheduled_for);
  body["started_at"] = EncodeOptionalTime(row.started_at);
  body["completed_at"] = EncodeOptionalTime(row.completed_at);
  body["viewed_at"] = EncodeOptionalTime(row.viewed_at);
  body["duration_seconds"] = SecondsBetween(row.started_at, row.completed_at);
  return body;
}

json::object Encode(const std::vector<build::Builds::TimelinePart>& timeline) {
  json::array columns;
  int64_t total = 0;
  for (const build::Builds::TimelinePart& part : timeline) {
    json::array builds;
    for (const build::BuildView& view : part.builds) builds.push_back(Encode(view));
    total += part.column.count;
    columns.push_back(
        {{"id", part.column.id},
         {"title", part.column.title},
         {"states", json::array(part.column.states.begin(), part.column.states.end())},
         {"count", part.column.count},
         {"builds", std::move(builds)}});
  }
  return {{"columns", std::move(columns)}, {"total", total}};
}

json::object Encode(const build::FileDifference& difference) {
  return {{"path", difference.path},
          {"change", difference.change},
          {"additions", difference.additions},
          {"deletions", difference.deletions},
          {"patch", difference.patch}};
}

json::object Encode(const store::BuildLogRow& line) {
  json::object body{{"id", line.line},
                    {"ts", FormatTime(line.at)},
                    {"source", line.source},
                    {"phase", line.phase},
                    {"text", line.text}};
  if (!line.raw.empty()) body["raw"] = line.raw;
  return body;
}

json::object Encode(const build::PreviewCheck& check) {
  return {{"state", check.state},
          {"preview_url", OrNull(check.preview_url)},
          {"embeddable", check.embedding.embeddable},
          {"reason", OrNull(check.embedding.reason)}};
}

json::object Encode(const build::Readiness& found) {
  const build::DeployPath& path = found.path;
  json::array install;
  for (const std::string& line : path.install) install.emplace_back(line);
  return {{"ready", found.blocking.empty()},
          {"blocking_issues", EncodeIssues(found.blocking)},
          {"warnings", EncodeIssues(found.warnings)},
          {"recommended_path",
           {{"target", path.target},
            {"install", std::move(install)},
            {"build", OrNull(path.build)},
            {"start", OrNull(path.start)},
            {"directory", OrNull(path.directory)}}}};
}

json::object Encode(const build::ChangeRequest& request) {
  json::value score;
  if (request.alignment_score) score = *request.alignment_score;
  return {{"build_id", request.build_id},
          {"parent_id", request.parent_id},
          {"change_description", request.change_description},
          {"iteration_number", request.iteration_number},
          {"tier_limit", request.tier_limit},
          {"alignment_score", std::move(score)},
          {"scope_creep_detected", request.scope_creep_detected},
          {"unrelated_files", json::value_from(request.beside_it)}};
}

json::object Encode(const build::Handbook& handbook) {
  json::array faq, changelog;
  for (const auto& [question, answer] : handbook.faq)
    faq.push_back({{"question", question}, {"answer", answer}});
  for (const auto& [version, description, at] : handbook.changelog)
    changelog.push_back(
        {{"version", version}, {"description", description}, {"at", FormatTime(at)}});
  return {{"overview", handbook.overview},
          {"features", json::value_from(handbook.features)},
          {"getting_started", json::value_from(handbook.getting_started)},
          {"faq", std::move(faq)},
          {"changelog", std::move(changelog)}};
}

Result<build::NewBuild> ReadNewBuild(const json::object& body) {
  build::NewBuild made{.project = TextOf(body, "project"),
                       .goal = TextOf(body, "goal"),
                       .runner = TextOf(body, "runner"),
                       .parent_id = TextOf(body, "parent_id")};
  const json::value* files = Field(body, "files");
  if (files) {
    TRY_ASSIGN(made.files, build::ParseFileChanges(*files));
  }
  if (!files && made.goal.empty())
    return Fail(Code::kInvalidArgument, "say what to build: a goal, or files");
  for (std::string_view name : {"agent_id", "template", "install_command", "checks",
                                "start_command", "port", "max_fixes", "env"})
    if (const json::value* value = Field(body, name)) made.options[name] = *value;
  return made;
}

void AddBuildSchemas(Frame& frame) {
  frame.AddSchema("Build", kBuild);
  frame.AddSchema("BuildList", ListSchema("builds", "Build"));
  frame.AddSchema("BuildTimeline", kTimeline);
  frame.AddSchema("NewBuild", kNewBuild);
  frame.AddSchema("StartedGeneration", R"({"type":"object","properties":{
    "job_id":{"type":"string"},"status":{"type":"string"},
    "build_version":{"type":["string","null"],"description":"predicted"}}})");
  frame.AddSchema("BuildCancel", R"({"type":"object","properties":{
    "reason":{"type":"string","maxLength":1000}}})");
  frame.AddSchema("BuildRollback", R"({"type":"object","required":["version"],"properties":{
    "version":{"type":"string","maxLength":40,"pattern":"^build_v0_[0-9]+$"}}})");
  frame.AddSchema("BuildFiles", R"({"type":"object","properties":{
    "files":{"type":"object","description":"those that are text",
      "additionalProperties":{"type":"string"}},
    "binary_files":{"type":"object","description":"all others, in base64",
      "additionalProperties":{"type":"string"}}}})");
  frame.AddSchema("BuildDiff", R"({"type":"object","properties":{"files":{"type":"array","items":{
    "type":"object","properties":{"path":{"type":"string"},
      "change":{"type":"string","enum":["added","modified","deleted"]},
      "additions":{"type":"integer"},"deletions":{"type":"integer"},
      "patch":{"type":"string"}}}}}})");
  frame.AddSchema("BuildIssue", kIssue);
  frame.AddSchema("BuildReadiness", kReadiness);
  frame.AddSchema("BuildChangeRequest", kChangeRequest);
  frame.AddSchema("BuildDocs", kDocs);
  frame.AddSchema("BuildLogLine", kLine);
  frame.AddSchema("BuildLogPage", R"({"type":"object","properties":{
    "lines":{"type":"array","items":{"$ref":"#/components/schemas/BuildLogLine"}},
    "has_more":{"type":"boolean"},"oldest_id":{"type":["integer","null"]}}})");
  frame.AddSchema("PreviewCheck", R"({"type":"object","properties":{
    "state":{"type":"string"},"preview_url":{"type":["string","null"]},
    "embeddable":{"type":"boolean"},"reason":{"type":["string","null"]}}})");
}

}  // namespace caisson::api
