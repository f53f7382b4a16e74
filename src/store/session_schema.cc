#include "store/work_schema.h"

namespace caisson::store {

const char* const kSessionSchemaUp = R"sql(
CREATE TABLE sessions (
  id                   TEXT PRIMARY KEY,
  owner_id             TEXT NOT NULL REFERENCES users (id),
  title                TEXT NOT NULL,
  repo_url             TEXT NOT NULL,
  base_branch          TEXT NOT NULL,
  branch               TEXT NOT NULL,
  agent_id             TEXT NOT NULL,
  model                TEXT NOT NULL,
  template_name        TEXT NOT NULL,
  sandbox_id           TEXT NOT NULL,
  status               TEXT NOT NULL CHECK (status IN ('provisioning', 'active', 'paused',
    'error', 'archived')),
  status_reason        TEXT NOT NULL,
  error                TEXT NOT NULL,
  options              TEXT NOT NULL,
  pull_request_url     TEXT NOT NULL,
  pull_request_number  INTEGER NOT NULL,
  running_ms           INTEGER NOT NULL,
  running_since        INTEGER,
  created_at           INTEGER NOT NULL,
  last_used_at         INTEGER NOT NULL,
  archived_at          INTEGER
) STRICT;
CREATE TABLE messages (
  id           TEXT PRIMARY KEY,
  session_id   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  owner_id     TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  role         TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
  state        TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed',
    'stopped')),
  mode         TEXT NOT NULL,
  content      TEXT NOT NULL,
  parts        TEXT NOT NULL,
  reply_to     TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  model        TEXT NOT NULL,
  tokens_in    INTEGER NOT NULL,
  tokens_out   INTEGER NOT NULL,
  dollars      REAL NOT NULL,
  commit_sha   TEXT NOT NULL,
  error        TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  started_at   INTEGER,
  finished_at  INTEGER
) STRICT;
CREATE INDEX sessions_owner ON sessions (owner_id, last_used_at);
CREATE INDEX sessions_idle ON sessions (status, last_used_at);
CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq);
CREATE INDEX messages_queue ON messages (session_id, state, seq);
)sql";

const char* const kSessionSchemaDown = R"sql(
DROP TABLE messages;
DROP TABLE sessions;
)sql";

const char* const kBuildSchemaUp = R"sql(
CREATE TABLE builds (
  id               TEXT PRIMARY KEY,
  owner_id         TEXT NOT NULL REFERENCES users (id),
  project          TEXT NOT NULL,
  run_id           TEXT NOT NULL,
  correlation_id   TEXT NOT NULL,
  state            TEXT NOT NULL CHECK (state IN ('queued', 'scheduled', 'starting', 'scaffold',
    'code', 'deps', 'checks', 'ready', 'failed')),
  runner           TEXT NOT NULL,
  goal             TEXT NOT NULL,
  options          TEXT NOT NULL,
  tier             TEXT NOT NULL,
  parent_id        TEXT NOT NULL,
  number           INTEGER NOT NULL,
  sandbox_id       TEXT NOT NULL,
  workspace_path   TEXT NOT NULL,
  framework        TEXT NOT NULL,
  start_command    TEXT NOT NULL,
  port             INTEGER NOT NULL,
  preview_url      TEXT NOT NULL,
  snapshot_id      TEXT NOT NULL,
  screenshot       TEXT NOT NULL,
  error_category   TEXT NOT NULL,
  error_message    TEXT NOT NULL,
  error_summary    TEXT NOT NULL,
  debug_id         TEXT NOT NULL,
  restored_id      TEXT NOT NULL,
  iterations_used  INTEGER NOT NULL,
  enqueued_at      INTEGER NOT NULL,
  scheduled_for    INTEGER,
  started_at       INTEGER,
  completed_at     INTEGER,
  viewing_until    INTEGER,
  viewed_at        INTEGER
) STRICT;
CREATE TABLE build_files (
  id        TEXT PRIMARY KEY,
  build_id  TEXT NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
  path      TEXT NOT NULL,
  content   TEXT NOT NULL
) STRICT;
CREATE TABLE build_logs (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  build_id  TEXT NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
  line      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  source    TEXT NOT NULL,
  phase     TEXT NOT NULL,
  text      TEXT NOT NULL,
  raw       TEXT NOT NULL
) STRICT;
CREATE INDEX builds_owner ON builds (owner_id, enqueued_at);
CREATE INDEX builds_project ON builds (owner_id, project, number);
CREATE INDEX builds_state ON builds (state, enqueued_at);
CREATE INDEX build_files_build ON build_files (build_id, path);
CREATE UNIQUE INDEX build_logs_line ON build_logs (build_id, line);
CREATE INDEX build_logs_age ON build_logs (at);
ALTER TABLE users ADD COLUMN tier TEXT NOT NULL DEFAULT '';
)sql";

const char* const kBuildSchemaDown = R"sql(
ALTER TABLE users DROP COLUMN tier;
DROP TABLE build_logs;
DROP TABLE build_files;
DROP TABLE builds;
)sql";

}  // namespace caisson::store
