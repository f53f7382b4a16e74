#include "store/work_schema.h"

namespace caisson::store {

// A column becomes a link by a new one in its place: SQLite adds none to a column that is there.
// agents.sandbox_id and cost_entries.sandbox_id are no links: '' stands for none in them. Nor is
// git_operations.sandbox_id: sandboxes of E2B's routes have no row in work_sandboxes.
const char* const kLinkSchemaUp = R"sql(
CREATE INDEX events_squad ON events (squad_id, id);
CREATE INDEX events_run ON events (run_id, id);

ALTER TABLE agents RENAME COLUMN current_task_id TO old_task_id;
ALTER TABLE agents ADD COLUMN current_task_id TEXT REFERENCES tasks (id) ON DELETE SET NULL;
UPDATE agents SET current_task_id = old_task_id WHERE old_task_id IN (SELECT id FROM tasks);
ALTER TABLE agents DROP COLUMN old_task_id;
CREATE INDEX agents_task ON agents (current_task_id);
)sql";

const char* const kLinkSchemaDown = R"sql(
DROP INDEX agents_task;
ALTER TABLE agents RENAME COLUMN current_task_id TO old_task_id;
ALTER TABLE agents ADD COLUMN current_task_id TEXT;
UPDATE agents SET current_task_id = old_task_id;
ALTER TABLE agents DROP COLUMN old_task_id;

DROP INDEX events_run;
DROP INDEX events_squad;
)sql";

}  // namespace caisson::store
