// The built-in agent's checkpoints; work/agent_loop.h has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

// How one run of the built-in agent is now: small, without the content of files.
struct AgentLoopRow {
  std::string id;
  std::string execution_id;  // of a task; the id of an answer or a build otherwise
  std::string sandbox_id;
  std::string phase = "planning";  // "planning", "executing", "done", "stuck", "failed"
  std::string state = "{}";        // a JSON object: counters, tries
  std::string prompt_hash;
  std::optional<Time> closed_at;  // it is kept to be read, nobody goes on with it
  Time created_at;
  Time updated_at;

  static constexpr auto kTable = MakeTable(
      "agent_loops", Column{"id", &AgentLoopRow::id},
      Column{"execution_id", &AgentLoopRow::execution_id},
      Column{"sandbox_id", &AgentLoopRow::sandbox_id}, Column{"phase", &AgentLoopRow::phase},
      Column{"state", &AgentLoopRow::state}, Column{"prompt_hash", &AgentLoopRow::prompt_hash},
      Column{"closed_at", &AgentLoopRow::closed_at},
      Column{"created_at", &AgentLoopRow::created_at},
      Column{"updated_at", &AgentLoopRow::updated_at});
};

// One message between the agent and its model; never changed.
struct AgentTurnRow {
  std::string id;
  std::string loop_id;
  int64_t seq = 0;
  std::string message;  // as the model gets it
  std::string output;   // what the agent told with it
  Time created_at;

  static constexpr auto kTable = MakeTable(
      "agent_turns", Column{"id", &AgentTurnRow::id}, Column{"loop_id", &AgentTurnRow::loop_id},
      Column{"seq", &AgentTurnRow::seq}, Column{"message", &AgentTurnRow::message},
      Column{"output", &AgentTurnRow::output}, Column{"created_at", &AgentTurnRow::created_at});
};

}  // namespace caisson::store
