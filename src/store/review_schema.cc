#include "store/work_schema.h"

namespace caisson::store {

const char* const kReviewSchemaUp = R"sql(
CREATE TABLE task_changes (
  task_id       TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  execution_id  TEXT NOT NULL,
  base_sha      TEXT NOT NULL,
  head_sha      TEXT NOT NULL,
  branch        TEXT NOT NULL,
  files         TEXT NOT NULL,
  patch         TEXT NOT NULL,
  truncated     INTEGER NOT NULL CHECK (truncated IN (0, 1)),
  created_at    INTEGER NOT NULL
) STRICT;
CREATE TABLE task_shares (
  id          TEXT PRIMARY KEY,
  task_id     TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  token_hash  TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX task_shares_token ON task_shares (token_hash);
CREATE INDEX task_shares_task ON task_shares (task_id, created_at);
CREATE INDEX task_shares_age ON task_shares (expires_at);
)sql";

const char* const kReviewSchemaDown = R"sql(
DROP TABLE task_shares;
DROP TABLE task_changes;
)sql";

}  // namespace caisson::store
