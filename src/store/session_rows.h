// Sessions and their messages; session/ has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

// A conversation with one sandbox.
struct SessionRow {
  std::string id;
  std::string owner_id;
  std::string title;
  std::string repo_url;     // "" = it has no repository
  std::string base_branch;  // "" = the repository's default
  std::string branch;       // what its answers are committed to, "" until then
  std::string agent_id;     // who answers; "" = nobody yet
  std::string model;        // "" = the agent's own choice
  std::string template_name;
  std::string sandbox_id;               // the row in work_sandboxes, "" until there is one
  std::string status = "provisioning";  // "provisioning", "active", "paused", "error", "archived"
  std::string status_reason;            // why it has that status: "idle", "request", "created", ...
  std::string error;                    // what went wrong, of status "error"
  std::string options = "{}";           // a JSON object: commit, pull_request, env ...
  std::string pull_request_url;
  int64_t pull_request_number = 0;
  std::string pull_request_state;     // as of tasks: "", "draft", "open", "approved", ...
  int64_t running_ms = 0;             // of its sandbox, up to the last pause
  std::optional<Time> running_since;  // while its sandbox runs
  Time created_at;
  Time last_used_at;  // a message, a command, a preview request
  std::optional<Time> archived_at;

  static constexpr auto kTable = MakeTable(
      "sessions", Column{"id", &SessionRow::id}, Column{"owner_id", &SessionRow::owner_id},
      Column{"title", &SessionRow::title}, Column{"repo_url", &SessionRow::repo_url},
      Column{"base_branch", &SessionRow::base_branch}, Column{"branch", &SessionRow::branch},
      Column{"agent_id", &SessionRow::agent_id}, Column{"model", &SessionRow::model},
      Column{"template_name", &SessionRow::template_name},
      Column{"sandbox_id", &SessionRow::sandbox_id}, Column{"status", &SessionRow::status},
      Column{"status_reason", &SessionRow::status_reason}, Column{"error", &SessionRow::error},
      Column{"options", &SessionRow::options},
      Column{"pull_request_url", &SessionRow::pull_request_url},
      Column{"pull_request_number", &SessionRow::pull_request_number},
      Column{"pull_request_state", &SessionRow::pull_request_state},
      Column{"running_ms", &SessionRow::running_ms},
      Column{"running_since", &SessionRow::running_since},
      Column{"created_at", &SessionRow::created_at},
      Column{"last_used_at", &SessionRow::last_used_at},
      Column{"archived_at", &SessionRow::archived_at});
};

// One message of a session. A user's message is answered by the agent in the order of `seq`.
struct MessageRow {
  std::string id;
  std::string session_id;
  std::string owner_id;
  int64_t seq = 0;             // its place in the session, from 1
  std::string role = "user";   // "user", "assistant", "system"
  std::string state = "done";  // "queued", "running", "done", "failed", "stopped"
  std::string mode = "build";  // "build", "plan": whether the agent may change files
  std::string content;         // the text; of an answer, all of it
  std::string parts = "[]";    // a JSON array: what the agent said and did, in order; bounded
  std::string reply_to;        // of an answer: the id of the message it answers
  std::string run_id;          // of a message that is answered
  std::string model;
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  double dollars = 0;
  std::string commit_sha;  // what the answer changed, "" if nothing
  std::string error;
  Time created_at;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;

  static constexpr auto kTable = MakeTable(
      "messages", Column{"id", &MessageRow::id}, Column{"session_id", &MessageRow::session_id},
      Column{"owner_id", &MessageRow::owner_id}, Column{"seq", &MessageRow::seq},
      Column{"role", &MessageRow::role}, Column{"state", &MessageRow::state},
      Column{"mode", &MessageRow::mode}, Column{"content", &MessageRow::content},
      Column{"parts", &MessageRow::parts}, Column{"reply_to", &MessageRow::reply_to},
      Column{"run_id", &MessageRow::run_id}, Column{"model", &MessageRow::model},
      Column{"tokens_in", &MessageRow::tokens_in}, Column{"tokens_out", &MessageRow::tokens_out},
      Column{"dollars", &MessageRow::dollars}, Column{"commit_sha", &MessageRow::commit_sha},
      Column{"error", &MessageRow::error}, Column{"created_at", &MessageRow::created_at},
      Column{"started_at", &MessageRow::started_at},
      Column{"finished_at", &MessageRow::finished_at});
};

}  // namespace caisson::store
