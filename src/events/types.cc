#include "events/types.h"

#include <array>
#include <boost/json.hpp>

namespace caisson::events {
namespace {

namespace json = boost::json;
using Kind = FieldKind;

constexpr Field kMessage[] = {{"message"}};
constexpr Field kTask[] = {{"title"}, {"status"}, {"previous_status", Kind::kText, false}};
constexpr Field kPause[] = {{"title"}, {"reason", Kind::kText, false}};
constexpr Field kAgent[] = {{"name"}, {"status"}};
constexpr Field kName[] = {{"name"}};
constexpr Field kExecution[] = {{"status"}};
constexpr Field kStep[] = {{"step"},
                           {"state"},
                           {"attempt", Kind::kInteger},
                           {"percent", Kind::kInteger, false},
                           {"message", Kind::kText, false}};
constexpr Field kProgress[] = {{"percent", Kind::kInteger}, {"message", Kind::kText, false}};
// The last two: output is missing here, so much of it.
constexpr Field kLog[] = {{"level"},
                          {"message"},
                          {"cut_lines", Kind::kInteger, false},
                          {"cut_bytes", Kind::kInteger, false}};
constexpr Field kStatus[] = {{"status"}, {"message", Kind::kText, false}};
constexpr Field kGit[] = {{"operation"},
                          {"status"},
                          {"message", Kind::kText, false},
                          {"recovery", Kind::kText, false},
                          {"progress", Kind::kInteger, false}};
constexpr Field kOutput[] = {{"output"}, {"stream"}, {"offset", Kind::kInteger, false}};
constexpr Field kPullRequest[] = {{"pr_number", Kind::kInteger}, {"pr_url"}};
constexpr Field kApproved[] = {
    {"pr_number", Kind::kInteger}, {"pr_url"}, {"reviewer"}, {"review_state"}};
constexpr Field kMerged[] = {
    {"pr_number", Kind::kInteger}, {"pr_url"}, {"merged_by"}, {"merge_commit_sha"}};
constexpr Field kClosed[] = {{"pr_number", Kind::kInteger}, {"pr_url"}, {"closed_by"}};
constexpr Field kReopened[] = {{"pr_number", Kind::kInteger}, {"pr_url"}, {"reopened_by"}};
constexpr Field kCreated[] = {{"status"}, {"template", Kind::kText, false}};
constexpr Field kTerminated[] = {{"runtime_seconds", Kind::kNumber},
                                 {"reason", Kind::kText, false}};
constexpr Field kTerminal[] = {{"terminal_id"}};
constexpr Field kTerminalEnd[] = {
    {"terminal_id"}, {"reason"}, {"exit_code", Kind::kInteger, false}};
constexpr Field kSandboxError[] = {
    {"operation"}, {"error_message"}, {"error_details", Kind::kObject, false}};
constexpr Field kTool[] = {{"tool"}, {"input", Kind::kObject, false}};
constexpr Field kThinking[] = {{"turn", Kind::kInteger}};
constexpr Field kToolCalled[] = {{"tool"}, {"call", Kind::kInteger}};
constexpr Field kEscalation[] = {{"problem"}, {"tried", Kind::kList}, {"recommended_action"}};
constexpr Field kState[] = {{"state"}};
constexpr Field kSleeping[] = {
    {"until"}, {"spent_microdollars", Kind::kInteger}, {"limit_microdollars", Kind::kInteger}};
constexpr Field kPlan[] = {{"steps", Kind::kList}};
constexpr Field kPhase[] = {{"phase"}};
constexpr Field kFile[] = {{"path"}, {"change"}};
constexpr Field kApproval[] = {{"approval_id"}, {"kind"}, {"title"}};
constexpr Field kDecision[] = {{"approval_id"}, {"state"}, {"comment", Kind::kText, false}};
constexpr Field kCost[] = {{"kind"}, {"dollars", Kind::kNumber}};
constexpr Field kBudget[] = {{"spent", Kind::kNumber}, {"budget", Kind::kNumber}};
constexpr Field kLowBudget[] = {{"limit", Kind::kInteger}, {"remaining", Kind::kInteger}};
constexpr Field kRun[] = {{"state"}, {"step", Kind::kText, false}, {"error", Kind::kText, false}};
constexpr Field kSession[] = {{"title"}, {"status"}, {"reason", Kind::kText, false}};
constexpr Field kSessionMessage[] = {
    {"message_id"}, {"seq", Kind::kInteger},         {"role"},
    {"state"},      {"content", Kind::kText, false}, {"error", Kind::kText, false}};
constexpr Field kDelta[] = {
    {"message_id"}, {"text"}, {"part", Kind::kInteger}, {"restart", Kind::kBool, false}};
constexpr Field kBuild[] = {{"state"},
                            {"stage_label"},
                            {"project"},
                            {"version", Kind::kText, false},
                            {"preview_url", Kind::kText, false},
                            {"error_summary", Kind::kText, false},
                            {"debug_id", Kind::kText, false}};
constexpr Field kAlert[] = {
    {"rule"}, {"value", Kind::kNumber}, {"limit", Kind::kNumber}, {"since"}, {"message"}};
constexpr Field kKeyRefused[] = {{"key_id"}, {"next_key_id", Kind::kText, false}};
constexpr Field kStage[] = {{"stage"}, {"stage_label"}, {"duration_ms", Kind::kInteger, false}};
constexpr Field kAutofix[] = {{"attempt", Kind::kInteger}, {"max", Kind::kInteger}};
constexpr Field kIteration[] = {{"build_version"}, {"change_description"}};
constexpr Field kExpiring[] = {{"ends_at"}, {"seconds_left", Kind::kInteger}};
constexpr Field kPart[] = {{"url"}};
constexpr Field kBuildDeleted[] = {{"project"}};
constexpr Field kMissed[] = {{"missed", Kind::kInteger}};
constexpr Field kReset[] = {{"reason"}, {"oldest", Kind::kInteger}};

constexpr std::array kTypes = {
    Type{"task_created", "A task was made.", kTask},
    Type{"task_updated", "A task changed: its column, its agent, its text.", kTask},
    Type{"task_paused", "The work on a task is to stand still.", kPause},
    Type{"task_resumed", "The work on a task goes on.", kPause},
    Type{"task_deleted", "A task was deleted.", kTask},
    Type{"agent_updated", "An agent was made or changed its status.", kAgent},
    Type{"agent_deleted", "An agent was deleted.", kName},
    Type{"squad_updated", "A squad was made or changed.", kName},
    Type{"squad_deleted", "A squad was deleted.", kName},
    Type{"execution_started", "An agent began to work on a task.", kExecution},
    Type{"execution_step", "A step of the work began, ended, or is tried again.", kStep},
    Type{"execution_completed", "The work on a task ended.", kExecution},
    Type{"run_updated", "A run changed its state.", kRun},
    Type{"status_update", "The status of an agent at its work.", kStatus},
    Type{"progress", "How far the work is.", kProgress},
    Type{"log", "A line of the platform's own.", kLog},
    Type{"message", "Something the agent said.", kMessage},
    Type{"agent_tool", "The agent used a tool.", kTool},
    Type{"agent.state", "What the built-in agent is doing now, or how it ended.", kState},
    Type{"agent.sleeping", "The day's budget is used up; the built-in agent waits.", kSleeping},
    Type{"agent.plan", "The plan of the built-in agent, and how far each step is.", kPlan},
    Type{"gsd.phase.started", "A phase of the built-in agent's work began.", kPhase},
    Type{"gsd.phase.completed", "A phase of the built-in agent's work is done.", kPhase},
    Type{"agent.thinking", "The built-in agent asks its model.", kThinking},
    Type{"agent.tool.called", "The built-in agent uses a tool.", kToolCalled},
    Type{"agent.escalated", "The built-in agent gave up; a person has to help.", kEscalation},
    Type{"file_changed", "The agent changed a file.", kFile},
    Type{"error", "Something failed.", kMessage},
    Type{"completed", "The work ended well.", kMessage},
    Type{"sandbox_created", "A sandbox was made.", kCreated},
    Type{"sandbox_status", "A sandbox changed its status.", kStatus},
    Type{"sandbox_terminated", "A sandbox ended.", kTerminated},
    Type{"sandbox_error", "An operation on a sandbox failed.", kSandboxError},
    Type{"git_operation", "Git began, goes on, ended or failed.", kGit},
    Type{"terminal_opened", "A shell was opened in a sandbox.", kTerminal},
    Type{"terminal_ended", "A shell in a sandbox ended.", kTerminalEnd},
    Type{"command_output", "Output of a command or an agent.", kOutput},
    Type{"pr_created", "A pull request was opened.", kPullRequest},
    Type{"pr_approved", "A pull request was approved.", kApproved},
    Type{"pr_changes_requested", "A reviewer wants changes.", kApproved},
    Type{"pr_merged", "A pull request was merged.", kMerged},
    Type{"pr_closed", "A pull request was closed without being merged.", kClosed},
    Type{"pr_reopened", "A pull request was opened again.", kReopened},
    Type{"approval_requested", "A person has to decide.", kApproval},
    Type{"approval_decided", "A person has decided.", kDecision},
    Type{"cost_recorded", "Something cost money.", kCost},
    Type{"budget_warning", "A budget is nearly or wholly spent.", kBudget},
    Type{"github_budget_low", "Few of GitHub's requests are left.", kLowBudget},
    Type{"provider_key_refused", "The provider of sandboxes refuses a key.", kKeyRefused},
    Type{"alert_raised", "A number of the server went over its limit.", kAlert},
    Type{"alert_ended", "A number of the server is back at its limit.", kAlert},
    Type{"session_updated", "A session was made or changed its status.", kSession},
    Type{"session_deleted", "A session was deleted.", kSession},
    Type{"session_message", "A message of a session came, began, or ended.", kSessionMessage},
    Type{"message_delta", "A piece of the answer that is being written.", kDelta},
    Type{"build_updated", "A build changed its state.", kBuild},
    Type{"build.stage.started", "A stage of a build began.", kStage},
    Type{"build.stage.completed", "A stage of a build ended.", kStage},
    Type{"build.autofix", "The runner tries to mend what the checks found.", kAutofix},
    Type{"iteration_completed", "A further version of a project is ready.", kIteration},
    Type{"snapshot.updated", "A build has a new picture of its preview.", kPart},
    Type{"documentation.updated", "A version is documented.", kPart},
    Type{"build.deleted", "A build was deleted with all it kept.", kBuildDeleted},
    Type{"sandbox_expiring", "A preview will soon be put to sleep.", kExpiring},
    Type{"connected", "The stream is open.", {}, false},
    Type{"heartbeat", "The stream is alive.", {}, false},
    Type{"overflow", "The reader is slow; what it missed follows.", kMissed, false},
    Type{"reset", "What was asked for is not in the log any more.", kReset, false},
};

struct KindName {
  Kind kind;
  std::string_view name;
};
constexpr std::array kKindNames = {
    KindName{Kind::kText, "string"},   KindName{Kind::kInteger, "integer"},
    KindName{Kind::kNumber, "number"}, KindName{Kind::kBool, "boolean"},
    KindName{Kind::kObject, "object"}, KindName{Kind::kList, "array"},
};

bool IsOf(Kind kind, const json::value& value) {
  switch (kind) {
    case Kind::kText:
      return value.is_string();
    case Kind::kInteger:
      return value.is_int64() || value.is_uint64();
    case Kind::kNumber:
      return value.is_number();
    case Kind::kBool:
      return value.is_bool();
    case Kind::kObject:
      return value.is_object();
    case Kind::kList:
      return value.is_array();
  }
  return false;
}

}  // namespace

std::span<const Type> Types() { return kTypes; }

const Type* FindType(std::string_view name) {
  for (const Type& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

json::object SchemaOf(const Type& type) {
  json::object properties;
  json::array required;
  for (const Field& field : type.fields) {
    for (const KindName& known : kKindNames)
      if (known.kind == field.kind) properties[field.name] = json::object{{"type", known.name}};
    if (field.required) required.emplace_back(field.name);
  }
  json::object schema{{"title", type.name},
                      {"description", type.description},
                      {"type", "object"},
                      {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Status CheckData(std::string_view name, const json::object& data) {
  const Type* type = FindType(name);
  if (!type || !type->stored) return Fail(Code::kInternal, "there is no event type '{}'", name);
  for (const Field& field : type->fields) {
    const json::value* value = data.if_contains(field.name);
    if (!value && field.required)
      return Fail(Code::kInternal, "an event '{}' needs the field '{}'", name, field.name);
    if (value && !IsOf(field.kind, *value))
      return Fail(Code::kInternal, "the field '{}' of an event '{}' has the wrong kind", field.name,
                  name);
  }
  return {};
}

}  // namespace caisson::events
