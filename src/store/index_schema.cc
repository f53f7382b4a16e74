#include "store/work_schema.h"

namespace caisson::store {

const char* const kIndexSchemaUp = R"sql(
CREATE INDEX events_sandbox ON events (sandbox_id, id);
CREATE INDEX builds_sandbox ON builds (sandbox_id);
DROP INDEX tasks_queued;
CREATE INDEX tasks_queued ON tasks (owner_id, queued_at) WHERE queued_at IS NOT NULL;
)sql";

const char* const kIndexSchemaDown = R"sql(
DROP INDEX tasks_queued;
CREATE INDEX tasks_queued ON tasks (queued_at) WHERE queued_at IS NOT NULL;
DROP INDEX builds_sandbox;
DROP INDEX events_sandbox;
)sql";

}  // namespace caisson::store
