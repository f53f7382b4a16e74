// What a task waits for: other tasks, without circles.
#pragma once

#include "store/transaction.h"
#include "store/work_rows.h"

namespace caisson::work {

// Replaces what `task` waits for. kInvalidArgument: it would wait for itself, over whatever way.
Status SetBlockers(store::Transaction& tx, const store::TaskRow& task,
                   const std::vector<std::string>& blocked_by);
Result<std::vector<std::string>> BlockersOf(store::Transaction& tx, const std::string& task_id);
Result<std::vector<std::string>> BlockedBy(store::Transaction& tx, const std::string& task_id);
// kFailedPrecondition that names those which are not done.
Status CheckNotBlocked(store::Transaction& tx, const store::TaskRow& task);

}  // namespace caisson::work
