#include "store/work_schema.h"

namespace caisson::store {

const char* const kLoopSchemaUp = R"sql(
CREATE TABLE agent_loops (
  id            TEXT PRIMARY KEY,
  execution_id  TEXT NOT NULL,
  sandbox_id    TEXT NOT NULL,
  phase         TEXT NOT NULL CHECK (phase IN ('planning', 'executing', 'done', 'stuck',
    'failed')),
  state         TEXT NOT NULL,
  prompt_hash   TEXT NOT NULL,
  closed_at     INTEGER,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE TABLE agent_turns (
  id          TEXT PRIMARY KEY,
  loop_id     TEXT NOT NULL REFERENCES agent_loops (id) ON DELETE CASCADE,
  seq         INTEGER NOT NULL,
  message     TEXT NOT NULL,
  output      TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX agent_loops_execution ON agent_loops (execution_id, sandbox_id);
CREATE INDEX agent_loops_age ON agent_loops (updated_at);
CREATE UNIQUE INDEX agent_turns_seq ON agent_turns (loop_id, seq);
)sql";

const char* const kLoopSchemaDown = R"sql(
DROP TABLE agent_turns;
DROP TABLE agent_loops;
)sql";

}  // namespace caisson::store
