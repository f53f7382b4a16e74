// The event log: facts that happened, with one growing id per database.
#pragma once

#include <optional>
#include <string>

#include "store/table.h"

namespace caisson::store {

// What it is about is told by the ids that are set; SSE filters by them. SECURITY: `data` is shown
// to everybody who may see the owner's things: secrets are cut out before it gets here.
struct EventRow {
  int64_t id = 0;
  Time at;
  std::string type;      // "task_updated", "command_output", ...; src/events/types.h has them all
  std::string owner_id;  // the user whose event it is
  std::string agent_id;  // these: "" if it is not about one
  std::string squad_id;
  std::string task_id;
  std::string execution_id;
  std::string run_id;
  std::string sandbox_id;
  std::string session_id;
  std::string build_id;
  std::string data = "{}";  // a JSON object, by the type's schema

  static constexpr auto kTable = MakeTable(
      "events", Column{"id", &EventRow::id}, Column{"at", &EventRow::at},
      Column{"type", &EventRow::type}, Column{"owner_id", &EventRow::owner_id},
      Column{"agent_id", &EventRow::agent_id}, Column{"squad_id", &EventRow::squad_id},
      Column{"task_id", &EventRow::task_id}, Column{"execution_id", &EventRow::execution_id},
      Column{"run_id", &EventRow::run_id}, Column{"sandbox_id", &EventRow::sandbox_id},
      Column{"session_id", &EventRow::session_id}, Column{"build_id", &EventRow::build_id},
      Column{"data", &EventRow::data});
};

}  // namespace caisson::store
