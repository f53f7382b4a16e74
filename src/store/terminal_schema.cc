#include "store/work_schema.h"

namespace caisson::store {

const char* const kTerminalSchemaUp = R"sql(
CREATE TABLE terminals (
  id          TEXT PRIMARY KEY,
  owner_id    TEXT NOT NULL,
  sandbox_id  TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX terminals_sandbox ON terminals (sandbox_id, created_at);
)sql";

const char* const kTerminalSchemaDown = R"sql(
DROP TABLE terminals;
)sql";

}  // namespace caisson::store
