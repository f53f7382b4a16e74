#include "api/work_codec.h"

#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "work/agent_config.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::ParseArray;
using work::ParseObject;

json::value OrNull(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value(nullptr);
}
json::value OrNull(const std::optional<Time>& time) {
  return time ? json::value(FormatTime(*time)) : json::value(nullptr);
}
json::array ToArray(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

// SECURITY: an agent's variables may hold keys that its owner put there; they are set, not shown.
json::object WithoutSecrets(json::object config) {
  if (json::value* env = config.if_contains("env"); env && env->is_object())
    for (auto& [name, value] : env->as_object()) value = "***";
  return config;
}

// Where in git somebody works.
json::value GitContext(const std::optional<store::TaskRow>& task) {
  if (!task) return nullptr;
  return json::object{{"repo_url", task->repo_url},
                      {"base_branch", task->base_branch},
                      {"git_branch", task->git_branch},
                      {"pull_request_url", task->pull_request_url}};
}

Answer Serve(work::Work& work, Call& call, WorkFunction function) {
  auto answer = co_await function(work, call);
  if (answer || answer.error().code() != Code::kInvalidArgument) co_return answer;
  co_return ErrorResponse(
      Refusal{.status = 422, .code = "validation_failed", .message = answer.error().message()},
      call.exchange.request_id());
}

}  // namespace

json::object Encode(const store::AgentRow& agent) {
  return {{"id", agent.id},
          {"owner_id", agent.owner_id},
          {"name", agent.name},
          {"role", agent.role},
          {"status", agent.status},
          {"adapter", agent.adapter},
          {"config", WithoutSecrets(ParseObject(agent.config))},
          {"current_task_id", OrNull(agent.current_task_id)},
          {"sandbox_id", agent.sandbox_id},
          {"avatar_url", agent.avatar_url},
          {"created_at", FormatTime(agent.created_at)},
          {"updated_at", FormatTime(agent.updated_at)},
          {"heartbeat_at", OrNull(agent.heartbeat_at)}};
}

json::object Encode(const work::Squad& squad) {
  json::array members;
  for (const work::Member& member : squad.members)
    members.push_back(json::object{{"agent_id", member.agent.id},
                                   {"name", member.agent.name},
                                   {"role", member.row.role},
                                   {"status", member.agent.status},
                                   {"current_task_id", OrNull(member.agent.current_task_id)},
                                   {"sandbox_id", member.agent.sandbox_id},
                                   {"git_context", GitContext(member.task)}});
  return {{"id", squad.row.id},
          {"owner_id", squad.row.owner_id},
          {"name", squad.row.name},
          {"description", squad.row.description},
          {"repo_url", squad.row.repo_url},
          {"paused", squad.row.paused_at.has_value()},
          {"paused_at", OrNull(squad.row.paused_at)},
          {"members", std::move(members)},
          {"created_at", FormatTime(squad.row.created_at)},
          {"updated_at", FormatTime(squad.row.updated_at)}};
}

json::object Encode(const work::TaskView& view) {
  const store::TaskRow& task = view.row;
  return {{"id", task.id},
          {"owner_id", task.owner_id},
          {"number", task.number},
          {"title", task.title},
          {"description", task.description},
          {"status", task.status},
          {"priority", task.priority},
          {"position", task.position},
          {"agent_id", OrNull(task.agent_id)},
          {"squad_id", OrNull(task.squad_id)},
          {"repo_url", task.repo_url},
          {"base_branch", task.base_branch},
          {"git_branch", task.git_branch},
          {"pull_request_url", task.pull_request_url},
          {"pull_request_number", task.pull_request_number},
          {"pull_request_state", task.pull_request_state},
          {"feedback", task.feedback},
          {"options", ParseObject(task.options)},
          {"blocked_by", ToArray(view.blocked_by)},
          {"blocks", ToArray(view.blocks)},
          {"paused_at", OrNull(task.paused_at)},
          {"pause_reason", task.pause_reason},
          {"queued_at", OrNull(task.queued_at)},
          {"queue_position", view.queue_position},
          {"created_at", FormatTime(task.created_at)},
          {"updated_at", FormatTime(task.updated_at)},
          {"completed_at", OrNull(task.completed_at)}};
}

json::object Encode(const store::ExecutionRow& execution) {
  return {{"id", execution.id},
          {"task_id", OrNull(execution.task_id)},
          {"agent_id", OrNull(execution.agent_id)},
          {"squad_id", OrNull(execution.squad_id)},
          {"run_id", execution.run_id},
          {"sandbox_id", execution.sandbox_id},
          {"status", execution.status},
          {"git_branch", execution.git_branch},
          {"base_sha", execution.base_sha},
          {"head_sha", execution.head_sha},
          {"pull_request_url", execution.pull_request_url},
          {"commits", ParseArray(execution.commits)},
          {"commit_history", ParseArray(execution.commits)},
          {"summary", execution.summary},
          {"exit_code", execution.exit_code},
          {"error", execution.error},
          {"created_at", FormatTime(execution.created_at)},
          {"started_at", OrNull(execution.started_at)},
          {"finished_at", OrNull(execution.finished_at)}};
}

json::object Encode(const work::Execution& execution) {
  json::object object = Encode(execution.row);
  json::array steps;
  for (const store::StepRow& step : execution.steps)
    steps.push_back(json::object{{"name", step.name},
                                 {"state", step.state},
                                 {"attempt", step.attempt},
                                 {"error", step.error},
                                 {"started_at", OrNull(step.started_at)},
                                 {"finished_at", OrNull(step.finished_at)}});
  object["steps"] = std::move(steps);
  return object;
}

json::object Encode(const store::ApprovalRow& approval) {
  return {{"id", approval.id},
          {"squad_id", OrNull(approval.squad_id)},
          {"task_id", OrNull(approval.task_id)},
          {"run_id", approval.run_id},
          {"kind", approval.kind},
          {"title", approval.title},
          {"details", ParseObject(approval.details)},
          {"state", approval.state},
          {"decided_by", approval.decided_by},
          {"comment", approval.comment},
          {"created_at", FormatTime(approval.created_at)},
          {"decided_at", OrNull(approval.decided_at)}};
}

json::object Encode(const store::CostRow& cost) {
  return {{"id", cost.id},
          {"squad_id", OrNull(cost.squad_id)},
          {"agent_id", OrNull(cost.agent_id)},
          {"task_id", OrNull(cost.task_id)},
          {"execution_id", cost.execution_id},
          {"sandbox_id", cost.sandbox_id},
          {"kind", cost.kind},
          {"model", cost.model},
          {"sandbox_ms", cost.sandbox_ms},
          {"cpu_ms", cost.cpu_ms},
          {"tokens_in", cost.tokens_in},
          {"tokens_out", cost.tokens_out},
          {"dollars", cost.dollars},
          {"at", FormatTime(cost.at)}};
}

json::object Encode(const work::CostSum& sum) {
  return {{"key", sum.key},        {"entries", sum.entries},     {"sandbox_ms", sum.sandbox_ms},
          {"cpu_ms", sum.cpu_ms},  {"tokens_in", sum.tokens_in}, {"tokens_out", sum.tokens_out},
          {"dollars", sum.dollars}};
}

json::object Encode(const store::GitOperationRow& operation) {
  return {{"id", operation.id},
          {"sandbox_id", operation.sandbox_id},
          {"task_id", OrNull(operation.task_id)},
          {"execution_id", operation.execution_id},
          {"operation", operation.operation},
          {"status", operation.status},
          {"command", operation.command},
          {"exit_code", operation.exit_code},
          {"attempts", operation.attempts},
          {"commit_sha", operation.commit_sha},
          {"error_type", operation.error_type},
          {"error_message", operation.error_message},
          {"output_head", operation.output_head},
          {"output_tail", operation.output_tail},
          {"duration_ms", operation.duration_ms},
          {"created_at", FormatTime(operation.created_at)}};
}

json::object Encode(const work::Started& started) {
  return {{"execution_id", started.execution_id},
          {"run_id", started.run_id},
          {"task_id", started.task_id},
          {"already_running", started.already && !started.queued},
          {"queued", started.queued}};
}

std::string ListSchema(std::string_view name, std::string_view item) {
  json::object items{{"type", "array"},
                     {"items", {{"$ref", fmt::format("#/components/schemas/{}", item)}}}};
  return json::serialize(
      json::object{{"type", "object"},
                   {"required", json::array{name, "total"}},
                   {"properties", {{name, std::move(items)}, {"total", {{"type", "integer"}}}}}});
}

Handler Bind(work::Work& work, WorkFunction function) {
  return [&work, function](Call& call) { return Serve(work, call, function); };
}

std::string TextParameter(const Call& call, std::string_view name) {
  return std::string(call.query.Get(name).value_or(""));
}

std::vector<std::string> TextParameters(const Call& call, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : call.query.all())
    if (key == name && !value.empty()) values.push_back(value);
  return values;
}

int64_t NumberParameter(const Call& call, std::string_view name, int64_t otherwise) {
  auto text = call.query.Get(name);
  return text ? ParseInt<int64_t>(*text).value_or(otherwise) : otherwise;
}

work::Page PageOf(const Call& call) {
  work::Page page;
  page.limit = NumberParameter(call, "limit", page.limit);
  page.offset = NumberParameter(call, "offset", page.offset);
  return page;
}

std::vector<Parameter> WithPage(std::vector<Parameter> parameters) {
  parameters.push_back({.name = "limit",
                        .type = "integer",
                        .description = "how many at most; 50 if it is not said",
                        .min = 1,
                        .max = 200});
  parameters.push_back({.name = "offset",
                        .type = "integer",
                        .description = "how many to skip",
                        .min = 0,
                        .max = 1'000'000'000});
  return parameters;
}

std::optional<std::string> OptionalText(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  if (!value || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

std::optional<std::string> OptionalId(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  if (value && value->is_null()) return "";
  return OptionalText(body, name);
}

}  // namespace caisson::api
