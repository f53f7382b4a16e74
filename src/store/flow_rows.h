// Durable runs and their steps; flow/ says what they mean.
#pragma once

#include "store/transaction.h"

namespace caisson::store {

struct RunRow {
  std::string id;
  std::string definition;  // "task"
  int64_t version = 1;     // of the definition that it was started with
  std::string owner_id;
  std::optional<std::string> task_id;
  std::string execution_id;
  // "queued", "running", "waiting", "succeeded", "failed", "canceled", "dead"
  std::string state = "queued";
  std::string step;           // the name of the step it is at
  std::string input = "{}";   // a JSON object
  std::string result = "{}";  // a JSON object, of one that succeeded
  std::string error_class;    // "transient", "persistent", "user_action", "fatal"
  std::string error;
  int64_t priority = 0;  // larger ones first
  // Runs with the same text share a limit; "" = none.
  std::string repo_key;
  std::string agent_key;
  std::string user_key;
  std::string node;  // the server that has its sandbox, and alone runs its steps; "" = any
  std::string cancel_reason;
  std::optional<Time> cancel_at;  // when it was asked to stop
  Time created_at;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  // One that has not begun by then is given up; nothing once it has, or if it may wait for ever.
  std::optional<Time> queue_expires_at;

  static constexpr auto kTable = MakeTable(
      "runs", Column{"id", &RunRow::id}, Column{"definition", &RunRow::definition},
      Column{"version", &RunRow::version}, Column{"owner_id", &RunRow::owner_id},
      Column{"task_id", &RunRow::task_id}, Column{"execution_id", &RunRow::execution_id},
      Column{"state", &RunRow::state}, Column{"step", &RunRow::step},
      Column{"input", &RunRow::input}, Column{"result", &RunRow::result},
      Column{"error_class", &RunRow::error_class}, Column{"error", &RunRow::error},
      Column{"priority", &RunRow::priority}, Column{"repo_key", &RunRow::repo_key},
      Column{"agent_key", &RunRow::agent_key}, Column{"user_key", &RunRow::user_key},
      Column{"node", &RunRow::node}, Column{"cancel_reason", &RunRow::cancel_reason},
      Column{"cancel_at", &RunRow::cancel_at}, Column{"created_at", &RunRow::created_at},
      Column{"started_at", &RunRow::started_at}, Column{"finished_at", &RunRow::finished_at},
      Column{"queue_expires_at", &RunRow::queue_expires_at});
};

// One step of a run. A step that is done is never run again: its result is what the next ones get.
struct StepRow {
  std::string id;
  std::string run_id;
  std::string name;  // unique within the run
  int64_t seq = 0;   // its place in the run
  // "ready", "running", "waiting" (for a signal), "done", "failed", "canceled"
  std::string state = "ready";
  int64_t attempt = 0;  // how often it was started
  int64_t max_attempts = 3;
  int64_t priority = 0;  // of its run
  Time run_at;           // not before this moment
  std::string lease_owner;
  std::optional<Time> lease_until;
  int64_t fence = 0;       // grows with every claim; a writer with an older one is refused
  std::string input_hash;  // of what it was first started with
  std::string result = "{}";
  std::string error_class;
  std::string error;
  std::string wait_key;  // the signal a waiting one waits for
  std::optional<Time> wait_until;
  std::string signal;  // what came for it, a JSON object; "" = nothing
  std::optional<Time> started_at;
  std::optional<Time> finished_at;

  static constexpr auto kTable = MakeTable(
      "steps", Column{"id", &StepRow::id}, Column{"run_id", &StepRow::run_id},
      Column{"name", &StepRow::name}, Column{"seq", &StepRow::seq},
      Column{"state", &StepRow::state}, Column{"attempt", &StepRow::attempt},
      Column{"max_attempts", &StepRow::max_attempts}, Column{"priority", &StepRow::priority},
      Column{"run_at", &StepRow::run_at}, Column{"lease_owner", &StepRow::lease_owner},
      Column{"lease_until", &StepRow::lease_until}, Column{"fence", &StepRow::fence},
      Column{"input_hash", &StepRow::input_hash}, Column{"result", &StepRow::result},
      Column{"error_class", &StepRow::error_class}, Column{"error", &StepRow::error},
      Column{"wait_key", &StepRow::wait_key}, Column{"wait_until", &StepRow::wait_until},
      Column{"signal", &StepRow::signal}, Column{"started_at", &StepRow::started_at},
      Column{"finished_at", &StepRow::finished_at});
};

// A signal that came before a step waited for it.
struct SignalRow {
  std::string wait_key;
  std::string data = "{}";  // a JSON object
  Time at;

  static constexpr auto kTable =
      MakeTable("signals", Column{"wait_key", &SignalRow::wait_key},
                Column{"data", &SignalRow::data}, Column{"at", &SignalRow::at});
};

// A server of this database; see StoreOptions::node.
struct NodeRow {
  std::string id;
  Time seen_at;  // when it said last that it is there

  static constexpr auto kTable =
      MakeTable("nodes", Column{"id", &NodeRow::id}, Column{"seen_at", &NodeRow::seen_at});
};

struct ClaimQuery {
  std::string lease_owner;  // who claims
  std::string node;         // at which server; runs of others are left to them,
  Time lost_before;         // unless they were seen last before this
  Time now;
  Time lease_until;
  // Running steps that may share a key of their run; 0 = unlimited.
  int64_t max_per_repo = 0;
  int64_t max_per_agent = 0;
  int64_t max_per_user = 0;
  // Runs of one repository that may have begun since then; 0 = unlimited.
  int64_t max_starts_per_repo = 0;
  Time starts_since;
};
// Takes the step that is due and most urgent (priority, then age, users in turn): ready, or running
// with a lease that has ended, or waiting longer than it may. Its fence and attempt grow. Two
// claims never get the same one. A run that was not begun in time has none to take.
Result<std::optional<StepRow>> ClaimStep(Transaction& transaction, const ClaimQuery& query);
// When the next step becomes due; nothing if none will by itself.
Result<std::optional<Time>> NextStepTime(Transaction& transaction);
// When the next run that waits for its start has to be given up.
Result<std::optional<Time>> NextQueueExpiry(Transaction& transaction);

}  // namespace caisson::store
