#include "store/work_schema.h"

namespace caisson::store {

// Sandboxes that live already belong to the server that made them.
const char* const kNodeSchemaUp = R"sql(
CREATE TABLE nodes (
  id       TEXT PRIMARY KEY,
  seen_at  INTEGER NOT NULL
) STRICT;
ALTER TABLE runs ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE work_sandboxes ADD COLUMN node TEXT NOT NULL DEFAULT '';
UPDATE work_sandboxes SET node = coalesce((SELECT sandboxes.node FROM sandboxes
  WHERE sandboxes.id = work_sandboxes.backend_id), '')
  WHERE provider = 'local' AND destroyed_at IS NULL;
)sql";

const char* const kNodeSchemaDown = R"sql(
ALTER TABLE work_sandboxes DROP COLUMN node;
ALTER TABLE runs DROP COLUMN node;
DROP TABLE nodes;
)sql";

}  // namespace caisson::store
