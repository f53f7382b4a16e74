// Agents, squads, tasks and what was done for them; work/ has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

struct AgentRow {
  std::string id;
  std::string owner_id;
  std::string name;
  std::string role;  // a word of the user's: "developer", "tech_lead"
  // "idle", "initializing", "cloning", "working", "committing", "pushing", "completed", "error",
  // "paused"
  std::string status = "idle";
  std::string adapter = "command";  // which program it is: "command", "claude", "codex", "external"
  std::string config = "{}";        // a JSON object, by the adapter
  std::optional<std::string> current_task_id;
  std::string sandbox_id;
  std::string avatar_url;
  Time created_at;
  Time updated_at;
  std::optional<Time> heartbeat_at;  // of an outside agent

  static constexpr auto kTable = MakeTable(
      "agents", Column{"id", &AgentRow::id}, Column{"owner_id", &AgentRow::owner_id},
      Column{"name", &AgentRow::name}, Column{"role", &AgentRow::role},
      Column{"status", &AgentRow::status}, Column{"adapter", &AgentRow::adapter},
      Column{"config", &AgentRow::config}, Column{"current_task_id", &AgentRow::current_task_id},
      Column{"sandbox_id", &AgentRow::sandbox_id}, Column{"avatar_url", &AgentRow::avatar_url},
      Column{"created_at", &AgentRow::created_at}, Column{"updated_at", &AgentRow::updated_at},
      Column{"heartbeat_at", &AgentRow::heartbeat_at});
};

struct SquadRow {
  std::string id;
  std::string owner_id;
  std::string name;
  std::string description;
  std::string repo_url;  // the default of its tasks, "" if none
  std::optional<Time> paused_at;
  Time created_at;
  Time updated_at;

  static constexpr auto kTable = MakeTable(
      "squads", Column{"id", &SquadRow::id}, Column{"owner_id", &SquadRow::owner_id},
      Column{"name", &SquadRow::name}, Column{"description", &SquadRow::description},
      Column{"repo_url", &SquadRow::repo_url}, Column{"paused_at", &SquadRow::paused_at},
      Column{"created_at", &SquadRow::created_at}, Column{"updated_at", &SquadRow::updated_at});
};

struct SquadMemberRow {
  std::string id;  // squad and agent in one text
  std::string squad_id;
  std::string agent_id;
  std::string role;
  Time created_at;

  static constexpr auto kTable = MakeTable(
      "squad_members", Column{"id", &SquadMemberRow::id},
      Column{"squad_id", &SquadMemberRow::squad_id}, Column{"agent_id", &SquadMemberRow::agent_id},
      Column{"role", &SquadMemberRow::role}, Column{"created_at", &SquadMemberRow::created_at});
};

struct TaskRow {
  std::string id;
  int64_t number = 0;  // a short one for people, grows per owner
  std::string owner_id;
  std::optional<std::string> squad_id;
  std::optional<std::string> agent_id;  // whom it is assigned to
  std::string title;
  std::string description;
  // "backlog", "pending", "in_progress", "in_review", "done", "failed", "canceled"
  std::string status = "pending";
  std::string priority = "medium";  // "low", "medium", "high", "urgent"
  double position = 0;              // its place in the column
  std::string repo_url;
  std::string base_branch;  // "" = the repository's default
  std::string git_branch;
  std::string pull_request_url;
  int64_t pull_request_number = 0;
  std::string pull_request_state;  // "", "draft", "open", "approved", "merged", "closed"
  std::string feedback;            // what a reviewer asks for, given to the agent next time
  std::string options = "{}";      // a JSON object: commit message, PR title and body, draft ...
  std::optional<Time> paused_at;   // the work on it stands still since then
  std::string pause_reason;
  std::optional<Time> queued_at;  // it starts when an agent is free, in the order of these
  Time created_at;
  Time updated_at;
  std::optional<Time> completed_at;

  static constexpr auto kTable = MakeTable(
      "tasks", Column{"id", &TaskRow::id}, Column{"number", &TaskRow::number},
      Column{"owner_id", &TaskRow::owner_id}, Column{"squad_id", &TaskRow::squad_id},
      Column{"agent_id", &TaskRow::agent_id}, Column{"title", &TaskRow::title},
      Column{"description", &TaskRow::description}, Column{"status", &TaskRow::status},
      Column{"priority", &TaskRow::priority}, Column{"position", &TaskRow::position},
      Column{"repo_url", &TaskRow::repo_url}, Column{"base_branch", &TaskRow::base_branch},
      Column{"git_branch", &TaskRow::git_branch},
      Column{"pull_request_url", &TaskRow::pull_request_url},
      Column{"pull_request_number", &TaskRow::pull_request_number},
      Column{"pull_request_state", &TaskRow::pull_request_state},
      Column{"feedback", &TaskRow::feedback}, Column{"options", &TaskRow::options},
      Column{"paused_at", &TaskRow::paused_at}, Column{"pause_reason", &TaskRow::pause_reason},
      Column{"queued_at", &TaskRow::queued_at}, Column{"created_at", &TaskRow::created_at},
      Column{"updated_at", &TaskRow::updated_at}, Column{"completed_at", &TaskRow::completed_at});
};

// `task_id` cannot start before `blocked_by` is done.
struct TaskDependencyRow {
  std::string id;  // both in one text
  std::string task_id;
  std::string blocked_by;

  static constexpr auto kTable =
      MakeTable("task_dependencies", Column{"id", &TaskDependencyRow::id},
                Column{"task_id", &TaskDependencyRow::task_id},
                Column{"blocked_by", &TaskDependencyRow::blocked_by});
};

// One attempt of an agent at a task; a run of flow/ drives it.
struct ExecutionRow {
  std::string id;
  std::string owner_id;
  std::optional<std::string> task_id;
  std::optional<std::string> agent_id;
  std::optional<std::string> squad_id;
  std::string run_id;
  std::string sandbox_id;
  std::string status = "queued";  // as of its run
  std::string git_branch;
  std::string base_sha;
  std::string head_sha;
  std::string pull_request_url;
  std::string commits = "[]";  // a JSON array of {sha, message}
  std::string summary;         // what the agent said at its end
  int64_t exit_code = -1;      // of the agent, -1 = has not ended
  std::string error;
  Time created_at;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;

  static constexpr auto kTable = MakeTable(
      "task_executions", Column{"id", &ExecutionRow::id},
      Column{"owner_id", &ExecutionRow::owner_id}, Column{"task_id", &ExecutionRow::task_id},
      Column{"agent_id", &ExecutionRow::agent_id}, Column{"squad_id", &ExecutionRow::squad_id},
      Column{"run_id", &ExecutionRow::run_id}, Column{"sandbox_id", &ExecutionRow::sandbox_id},
      Column{"status", &ExecutionRow::status}, Column{"git_branch", &ExecutionRow::git_branch},
      Column{"base_sha", &ExecutionRow::base_sha}, Column{"head_sha", &ExecutionRow::head_sha},
      Column{"pull_request_url", &ExecutionRow::pull_request_url},
      Column{"commits", &ExecutionRow::commits}, Column{"summary", &ExecutionRow::summary},
      Column{"exit_code", &ExecutionRow::exit_code}, Column{"error", &ExecutionRow::error},
      Column{"created_at", &ExecutionRow::created_at},
      Column{"started_at", &ExecutionRow::started_at},
      Column{"finished_at", &ExecutionRow::finished_at});
};

// A question to a person; a step of a run may wait for the answer.
struct ApprovalRow {
  std::string id;
  std::string owner_id;
  std::optional<std::string> squad_id;
  std::optional<std::string> task_id;
  std::string run_id;
  std::string kind;  // "push", "merge", "question"
  std::string title;
  std::string details = "{}";
  std::string state = "pending";  // "pending", "approved", "rejected", "expired"
  std::string decided_by;
  std::string comment;
  Time created_at;
  std::optional<Time> decided_at;

  static constexpr auto kTable = MakeTable(
      "approval_requests", Column{"id", &ApprovalRow::id},
      Column{"owner_id", &ApprovalRow::owner_id}, Column{"squad_id", &ApprovalRow::squad_id},
      Column{"task_id", &ApprovalRow::task_id}, Column{"run_id", &ApprovalRow::run_id},
      Column{"kind", &ApprovalRow::kind}, Column{"title", &ApprovalRow::title},
      Column{"details", &ApprovalRow::details}, Column{"state", &ApprovalRow::state},
      Column{"decided_by", &ApprovalRow::decided_by}, Column{"comment", &ApprovalRow::comment},
      Column{"created_at", &ApprovalRow::created_at},
      Column{"decided_at", &ApprovalRow::decided_at});
};

// What something cost. Of each (kind, subject) there is at most one entry per execution and step,
// so that a repeated step does not count twice.
struct CostRow {
  std::string id;
  std::string owner_id;
  std::optional<std::string> squad_id;
  std::optional<std::string> agent_id;
  std::optional<std::string> task_id;
  std::string execution_id;
  std::string sandbox_id;
  std::string kind;  // "sandbox", "model"
  std::string model;
  int64_t sandbox_ms = 0;  // time it ran; paused time does not count
  int64_t cpu_ms = 0;
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  double dollars = 0;
  Time at;

  static constexpr auto kTable = MakeTable(
      "cost_entries", Column{"id", &CostRow::id}, Column{"owner_id", &CostRow::owner_id},
      Column{"squad_id", &CostRow::squad_id}, Column{"agent_id", &CostRow::agent_id},
      Column{"task_id", &CostRow::task_id}, Column{"execution_id", &CostRow::execution_id},
      Column{"sandbox_id", &CostRow::sandbox_id}, Column{"kind", &CostRow::kind},
      Column{"model", &CostRow::model}, Column{"sandbox_ms", &CostRow::sandbox_ms},
      Column{"cpu_ms", &CostRow::cpu_ms}, Column{"tokens_in", &CostRow::tokens_in},
      Column{"tokens_out", &CostRow::tokens_out}, Column{"dollars", &CostRow::dollars},
      Column{"at", &CostRow::at});
};

}  // namespace caisson::store
