#include "store/work_schema.h"

namespace caisson::store {

const char* const kPauseSchemaUp = R"sql(
ALTER TABLE tasks ADD COLUMN paused_at INTEGER;
ALTER TABLE tasks ADD COLUMN pause_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN queued_at INTEGER;
ALTER TABLE work_sandboxes ADD COLUMN paused_at INTEGER;
ALTER TABLE work_sandboxes ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_queued ON tasks (queued_at) WHERE queued_at IS NOT NULL;
)sql";

const char* const kPauseSchemaDown = R"sql(
DROP INDEX tasks_queued;
ALTER TABLE work_sandboxes DROP COLUMN paused_ms;
ALTER TABLE work_sandboxes DROP COLUMN paused_at;
ALTER TABLE tasks DROP COLUMN queued_at;
ALTER TABLE tasks DROP COLUMN pause_reason;
ALTER TABLE tasks DROP COLUMN paused_at;
)sql";

}  // namespace caisson::store
