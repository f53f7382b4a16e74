#include "store/old_runs.h"

namespace caisson::store {

Result<int64_t> DeleteOldRuns(Transaction& transaction, Time before, int64_t most) {
  Database& database = transaction.database();
  // One that ended before was made before: the index is by that.
  TRY(database.Run(
      "DELETE FROM runs WHERE id IN (SELECT runs.id FROM runs "
      "LEFT JOIN tasks ON tasks.id = runs.task_id "
      "WHERE runs.state IN ('succeeded', 'failed', 'canceled', 'dead') "
      "AND runs.created_at < ?1 AND runs.finished_at < ?1 "
      "AND (tasks.id IS NULL OR tasks.status IN ('done', 'failed', 'canceled')) LIMIT ?2)",
      before, most));
  return database.changes();
}

}  // namespace caisson::store
