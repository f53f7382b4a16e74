// Executions: one attempt of an agent at a task.
#pragma once

#include "store/flow_rows.h"
#include "store/sandbox_rows.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct Execution {
  store::ExecutionRow row;
  std::vector<store::StepRow> steps;  // in their order; none of an outside agent
};

class Executions {
 public:
  explicit Executions(Platform platform) : platform_(platform) {}

  // Newest first.
  Task<Result<Listed<store::ExecutionRow>>> List(std::string owner_id, std::string task_id,
                                                 Page page);
  Task<Result<Execution>> Get(std::string owner_id, std::string id);
  // What was run in sandboxes for a task, oldest first.
  Task<Result<Listed<store::GitOperationRow>>> Operations(std::string owner_id, std::string task_id,
                                                          Page page);

 private:
  Platform platform_;
};

// "queued", "running", "waiting".
bool IsLive(std::string_view status);
// Those that are not over, newest first, whose field (task_id, agent_id, squad_id) is `id`.
Result<std::vector<store::ExecutionRow>> LiveExecutions(
    store::Transaction& tx, std::optional<std::string> store::ExecutionRow::* field,
    const std::string& id);

}  // namespace caisson::work
