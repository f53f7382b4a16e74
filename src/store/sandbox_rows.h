// Sandboxes as the work platform holds them, and what git did in them.
#pragma once

#include "store/table.h"

namespace caisson::store {

// One sandbox and its owner; at most one live one per owner. What it is by itself (limits, network,
// saved state) is in the rows of sandbox/, or with the provider.
struct WorkSandboxRow {
  std::string id;          // ours; of the local provider the same as backend_id, once that is known
  std::string provider;    // "local", "e2b"
  std::string node;        // the server that has it; "" = all reach it
  std::string backend_id;  // "" until it is known; unique among live ones
  std::string owner_id;    // a user
  std::string holder_kind;  // "task", "session", "build", "user"
  std::string holder_id;    // the execution, session, build; "" for "user"
  std::optional<std::string> agent_id;
  std::optional<std::string> task_id;
  // "creating", "running", "pausing", "paused", "resuming", "terminating", "terminated", "error"
  std::string status = "creating";
  std::string repo_url;
  std::string repo_path;  // where it was cloned to
  std::string base_branch;
  std::string branch_name;
  std::string last_commit_sha;
  std::string last_commit_message;
  int64_t pr_number = 0;
  std::string last_error;
  int64_t creation_ms = 0;
  std::optional<Time> paused_at;  // while it is paused
  int64_t paused_ms = 0;          // how long it was before, altogether
  Time created_at;
  Time last_used_at;
  std::optional<Time> destroyed_at;

  static constexpr auto kTable = MakeTable(
      "work_sandboxes", Column{"id", &WorkSandboxRow::id},
      Column{"provider", &WorkSandboxRow::provider}, Column{"node", &WorkSandboxRow::node},
      Column{"backend_id", &WorkSandboxRow::backend_id},
      Column{"owner_id", &WorkSandboxRow::owner_id},
      Column{"holder_kind", &WorkSandboxRow::holder_kind},
      Column{"holder_id", &WorkSandboxRow::holder_id},
      Column{"agent_id", &WorkSandboxRow::agent_id}, Column{"task_id", &WorkSandboxRow::task_id},
      Column{"status", &WorkSandboxRow::status}, Column{"repo_url", &WorkSandboxRow::repo_url},
      Column{"repo_path", &WorkSandboxRow::repo_path},
      Column{"base_branch", &WorkSandboxRow::base_branch},
      Column{"branch_name", &WorkSandboxRow::branch_name},
      Column{"last_commit_sha", &WorkSandboxRow::last_commit_sha},
      Column{"last_commit_message", &WorkSandboxRow::last_commit_message},
      Column{"pr_number", &WorkSandboxRow::pr_number},
      Column{"last_error", &WorkSandboxRow::last_error},
      Column{"creation_ms", &WorkSandboxRow::creation_ms},
      Column{"paused_at", &WorkSandboxRow::paused_at},
      Column{"paused_ms", &WorkSandboxRow::paused_ms},
      Column{"created_at", &WorkSandboxRow::created_at},
      Column{"last_used_at", &WorkSandboxRow::last_used_at},
      Column{"destroyed_at", &WorkSandboxRow::destroyed_at});
};

// One command that the platform ran in a sandbox for git or for a user. Output is redacted.
struct GitOperationRow {
  std::string id;
  std::string owner_id;
  std::string sandbox_id;
  std::optional<std::string> task_id;
  std::string execution_id;
  std::string operation;           // "clone", "branch", "commit", "push", "execute", ...
  std::string status = "started";  // "started", "completed", "failed"
  std::string command;
  int64_t exit_code = -1;
  int64_t attempts = 1;
  std::string commit_sha;
  std::string error_type;  // "auth", "network", "conflict", "not_found", "rejected", "other"
  std::string error_message;
  std::string output_head;
  std::string output_tail;
  int64_t duration_ms = 0;
  Time created_at;

  static constexpr auto kTable = MakeTable("git_operations", Column{"id", &GitOperationRow::id},
                                           Column{"owner_id", &GitOperationRow::owner_id},
                                           Column{"sandbox_id", &GitOperationRow::sandbox_id},
                                           Column{"task_id", &GitOperationRow::task_id},
                                           Column{"execution_id", &GitOperationRow::execution_id},
                                           Column{"operation", &GitOperationRow::operation},
                                           Column{"status", &GitOperationRow::status},
                                           Column{"command", &GitOperationRow::command},
                                           Column{"exit_code", &GitOperationRow::exit_code},
                                           Column{"attempts", &GitOperationRow::attempts},
                                           Column{"commit_sha", &GitOperationRow::commit_sha},
                                           Column{"error_type", &GitOperationRow::error_type},
                                           Column{"error_message", &GitOperationRow::error_message},
                                           Column{"output_head", &GitOperationRow::output_head},
                                           Column{"output_tail", &GitOperationRow::output_tail},
                                           Column{"duration_ms", &GitOperationRow::duration_ms},
                                           Column{"created_at", &GitOperationRow::created_at});
};

// A webhook that was received; its id is the sender's, so that a repeated one is known. One that
// was refused or failed has an id of our own: it may come again.
struct WebhookRow {
  std::string id;
  std::string source;   // "github"
  std::string event;    // "pull_request"
  std::string action;   // "closed"
  std::string repo;     // "owner/name"
  std::string outcome;  // "processed", "ignored", "refused", "failed"
  std::string note;     // why
  Time at;

  static constexpr auto kTable = MakeTable(
      "webhook_deliveries", Column{"id", &WebhookRow::id}, Column{"source", &WebhookRow::source},
      Column{"event", &WebhookRow::event}, Column{"action", &WebhookRow::action},
      Column{"repo", &WebhookRow::repo}, Column{"outcome", &WebhookRow::outcome},
      Column{"note", &WebhookRow::note}, Column{"at", &WebhookRow::at});
};

}  // namespace caisson::store
