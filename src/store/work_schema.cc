#include "store/work_schema.h"

namespace caisson::store {

const char* const kWorkSchemaUp = R"sql(
ALTER TABLE api_keys ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
ALTER TABLE sandboxes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN node TEXT NOT NULL DEFAULT '';

CREATE TABLE users (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  role           TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
  password_hash  TEXT NOT NULL,
  created_at     INTEGER NOT NULL,
  disabled_at    INTEGER
) STRICT;
CREATE TABLE logins (
  id            TEXT PRIMARY KEY,
  user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  refresh_hash  TEXT NOT NULL UNIQUE,
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  ended_at      INTEGER
) STRICT;
CREATE TABLE audit_log (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  at          INTEGER NOT NULL,
  actor_id    TEXT NOT NULL,
  key_id      TEXT NOT NULL,
  action      TEXT NOT NULL,
  target      TEXT NOT NULL,
  status      INTEGER NOT NULL,
  request_id  TEXT NOT NULL,
  address     TEXT NOT NULL
) STRICT;
CREATE TABLE idempotency (
  id            TEXT PRIMARY KEY,
  request_hash  TEXT NOT NULL,
  status        INTEGER NOT NULL,
  body          TEXT NOT NULL,
  created_at    INTEGER NOT NULL
) STRICT;
CREATE TABLE agents (
  id               TEXT PRIMARY KEY,
  owner_id         TEXT NOT NULL REFERENCES users (id),
  name             TEXT NOT NULL,
  role             TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status IN ('idle', 'initializing',
    'cloning', 'working', 'committing', 'pushing', 'completed', 'error', 'paused')),
  adapter          TEXT NOT NULL,
  config           TEXT NOT NULL,
  current_task_id  TEXT,
  sandbox_id       TEXT NOT NULL,
  avatar_url       TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  heartbeat_at     INTEGER
) STRICT;
CREATE TABLE squads (
  id           TEXT PRIMARY KEY,
  owner_id     TEXT NOT NULL REFERENCES users (id),
  name         TEXT NOT NULL,
  description  TEXT NOT NULL,
  repo_url     TEXT NOT NULL,
  paused_at    INTEGER,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT;
CREATE TABLE squad_members (
  id          TEXT PRIMARY KEY,
  squad_id    TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE,
  agent_id    TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  role        TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE TABLE tasks (
  id                   TEXT PRIMARY KEY,
  number               INTEGER NOT NULL,
  owner_id             TEXT NOT NULL REFERENCES users (id),
  squad_id             TEXT REFERENCES squads (id) ON DELETE SET NULL,
  agent_id             TEXT REFERENCES agents (id) ON DELETE SET NULL,
  title                TEXT NOT NULL,
  description          TEXT NOT NULL,
  status               TEXT NOT NULL CHECK (status IN ('backlog',
    'pending', 'in_progress', 'in_review', 'done', 'failed', 'canceled')),
  priority             TEXT NOT NULL CHECK (priority IN ('low', 'medium',
    'high', 'urgent')),
  position             REAL NOT NULL,
  repo_url             TEXT NOT NULL,
  base_branch          TEXT NOT NULL,
  git_branch           TEXT NOT NULL,
  pull_request_url     TEXT NOT NULL,
  pull_request_number  INTEGER NOT NULL,
  pull_request_state   TEXT NOT NULL,
  feedback             TEXT NOT NULL,
  options              TEXT NOT NULL,
  created_at           INTEGER NOT NULL,
  updated_at           INTEGER NOT NULL,
  completed_at         INTEGER
) STRICT;
CREATE TABLE task_dependencies (
  id          TEXT PRIMARY KEY,
  task_id     TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  blocked_by  TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE
) STRICT;
CREATE TABLE task_executions (
  id                TEXT PRIMARY KEY,
  owner_id          TEXT NOT NULL REFERENCES users (id),
  task_id           TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  agent_id          TEXT REFERENCES agents (id) ON DELETE SET NULL,
  squad_id          TEXT REFERENCES squads (id) ON DELETE SET NULL,
  run_id            TEXT NOT NULL,
  sandbox_id        TEXT NOT NULL,
  status            TEXT NOT NULL,
  git_branch        TEXT NOT NULL,
  base_sha          TEXT NOT NULL,
  head_sha          TEXT NOT NULL,
  pull_request_url  TEXT NOT NULL,
  commits           TEXT NOT NULL,
  summary           TEXT NOT NULL,
  exit_code         INTEGER NOT NULL,
  error             TEXT NOT NULL,
  created_at        INTEGER NOT NULL,
  started_at        INTEGER,
  finished_at       INTEGER
) STRICT;
CREATE TABLE approval_requests (
  id          TEXT PRIMARY KEY,
  owner_id    TEXT NOT NULL REFERENCES users (id),
  squad_id    TEXT REFERENCES squads (id) ON DELETE SET NULL,
  task_id     TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  run_id      TEXT NOT NULL,
  kind        TEXT NOT NULL,
  title       TEXT NOT NULL,
  details     TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected',
    'expired')),
  decided_by  TEXT NOT NULL,
  comment     TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  decided_at  INTEGER
) STRICT;
CREATE TABLE cost_entries (
  id            TEXT PRIMARY KEY,
  owner_id      TEXT NOT NULL REFERENCES users (id),
  squad_id      TEXT REFERENCES squads (id) ON DELETE SET NULL,
  agent_id      TEXT REFERENCES agents (id) ON DELETE SET NULL,
  task_id       TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  execution_id  TEXT NOT NULL,
  sandbox_id    TEXT NOT NULL,
  kind          TEXT NOT NULL,
  model         TEXT NOT NULL,
  sandbox_ms    INTEGER NOT NULL,
  cpu_ms        INTEGER NOT NULL,
  tokens_in     INTEGER NOT NULL,
  tokens_out    INTEGER NOT NULL,
  dollars       REAL NOT NULL,
  at            INTEGER NOT NULL
) STRICT;
CREATE TABLE work_sandboxes (
  id                   TEXT PRIMARY KEY,
  provider             TEXT NOT NULL,
  backend_id           TEXT NOT NULL,
  owner_id             TEXT NOT NULL REFERENCES users (id),
  holder_kind          TEXT NOT NULL CHECK (holder_kind IN ('task', 'session', 'build',
    'user')),
  holder_id            TEXT NOT NULL,
  agent_id             TEXT REFERENCES agents (id) ON DELETE SET NULL,
  task_id              TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  status               TEXT NOT NULL CHECK (status IN ('creating', 'running',
    'pausing', 'paused', 'resuming', 'terminating', 'terminated', 'error')),
  repo_url             TEXT NOT NULL,
  repo_path            TEXT NOT NULL,
  base_branch          TEXT NOT NULL,
  branch_name          TEXT NOT NULL,
  last_commit_sha      TEXT NOT NULL,
  last_commit_message  TEXT NOT NULL,
  pr_number            INTEGER NOT NULL,
  last_error           TEXT NOT NULL,
  creation_ms          INTEGER NOT NULL,
  created_at           INTEGER NOT NULL,
  last_used_at         INTEGER NOT NULL,
  destroyed_at         INTEGER
) STRICT;
CREATE TABLE git_operations (
  id             TEXT PRIMARY KEY,
  owner_id       TEXT NOT NULL REFERENCES users (id),
  sandbox_id     TEXT NOT NULL,
  task_id        TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  execution_id   TEXT NOT NULL,
  operation      TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('started', 'completed', 'failed')),
  command        TEXT NOT NULL,
  exit_code      INTEGER NOT NULL,
  attempts       INTEGER NOT NULL,
  commit_sha     TEXT NOT NULL,
  error_type     TEXT NOT NULL,
  error_message  TEXT NOT NULL,
  output_head    TEXT NOT NULL,
  output_tail    TEXT NOT NULL,
  duration_ms    INTEGER NOT NULL,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_deliveries (
  id       TEXT PRIMARY KEY,
  source   TEXT NOT NULL,
  event    TEXT NOT NULL,
  action   TEXT NOT NULL,
  repo     TEXT NOT NULL,
  outcome  TEXT NOT NULL,
  note     TEXT NOT NULL,
  at       INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
  id             TEXT PRIMARY KEY,
  definition     TEXT NOT NULL,
  version        INTEGER NOT NULL,
  owner_id       TEXT NOT NULL REFERENCES users (id),
  task_id        TEXT REFERENCES tasks (id) ON DELETE SET NULL,
  execution_id   TEXT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'succeeded', 'failed',
    'canceled', 'dead')),
  step           TEXT NOT NULL,
  input          TEXT NOT NULL,
  result         TEXT NOT NULL,
  error_class    TEXT NOT NULL,
  error          TEXT NOT NULL,
  priority       INTEGER NOT NULL,
  repo_key       TEXT NOT NULL,
  agent_key      TEXT NOT NULL,
  user_key       TEXT NOT NULL,
  cancel_reason  TEXT NOT NULL,
  cancel_at      INTEGER,
  created_at     INTEGER NOT NULL,
  started_at     INTEGER,
  finished_at    INTEGER
) STRICT;
CREATE TABLE steps (
  id            TEXT PRIMARY KEY,
  run_id        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name          TEXT NOT NULL,
  seq           INTEGER NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('ready', 'running', 'waiting', 'done', 'failed',
    'canceled')),
  attempt       INTEGER NOT NULL,
  max_attempts  INTEGER NOT NULL,
  priority      INTEGER NOT NULL,
  run_at        INTEGER NOT NULL,
  lease_owner   TEXT NOT NULL,
  lease_until   INTEGER,
  fence         INTEGER NOT NULL,
  input_hash    TEXT NOT NULL,
  result        TEXT NOT NULL,
  error_class   TEXT NOT NULL,
  error         TEXT NOT NULL,
  wait_key      TEXT NOT NULL,
  wait_until    INTEGER,
  signal        TEXT NOT NULL,
  started_at    INTEGER,
  finished_at   INTEGER
) STRICT;
CREATE TABLE signals (
  wait_key  TEXT PRIMARY KEY,
  data      TEXT NOT NULL,
  at        INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  at            INTEGER NOT NULL,
  type          TEXT NOT NULL,
  owner_id      TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  squad_id      TEXT NOT NULL,
  task_id       TEXT NOT NULL,
  execution_id  TEXT NOT NULL,
  run_id        TEXT NOT NULL,
  sandbox_id    TEXT NOT NULL,
  session_id    TEXT NOT NULL,
  build_id      TEXT NOT NULL,
  data          TEXT NOT NULL
) STRICT;

CREATE INDEX logins_user ON logins (user_id);
CREATE INDEX audit_log_actor ON audit_log (actor_id, id);
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX agents_owner ON agents (owner_id);
CREATE INDEX squads_owner ON squads (owner_id);
CREATE INDEX squad_members_squad ON squad_members (squad_id);
CREATE INDEX squad_members_agent ON squad_members (agent_id);
CREATE INDEX tasks_column ON tasks (owner_id, status, position);
CREATE INDEX tasks_agent ON tasks (agent_id);
CREATE INDEX tasks_squad ON tasks (squad_id);
CREATE INDEX tasks_pull_request ON tasks (pull_request_number);
CREATE UNIQUE INDEX tasks_number ON tasks (owner_id, number);
CREATE INDEX task_dependencies_task ON task_dependencies (task_id);
CREATE INDEX task_dependencies_other ON task_dependencies (blocked_by);
CREATE INDEX task_executions_task ON task_executions (task_id, created_at);
CREATE INDEX task_executions_agent ON task_executions (agent_id, created_at);
CREATE INDEX approval_requests_open ON approval_requests (owner_id, state, created_at);
CREATE INDEX cost_entries_owner ON cost_entries (owner_id, at);
CREATE INDEX cost_entries_task ON cost_entries (task_id);
CREATE INDEX cost_entries_sandbox ON cost_entries (sandbox_id);
CREATE UNIQUE INDEX work_sandboxes_backend ON work_sandboxes (provider, backend_id)
  WHERE destroyed_at IS NULL AND backend_id <> '';
CREATE UNIQUE INDEX work_sandboxes_holder ON work_sandboxes (holder_kind, holder_id)
  WHERE destroyed_at IS NULL AND holder_id <> '';
CREATE INDEX work_sandboxes_by_backend ON work_sandboxes (backend_id);
CREATE INDEX work_sandboxes_by_holder ON work_sandboxes (holder_kind, holder_id);
CREATE INDEX work_sandboxes_task ON work_sandboxes (task_id, status);
CREATE INDEX work_sandboxes_status ON work_sandboxes (status);
CREATE INDEX work_sandboxes_owner ON work_sandboxes (owner_id, created_at);
CREATE INDEX work_sandboxes_pr ON work_sandboxes (pr_number);
CREATE INDEX git_operations_sandbox ON git_operations (sandbox_id, created_at);
CREATE INDEX git_operations_task ON git_operations (task_id, created_at);
CREATE INDEX git_operations_age ON git_operations (created_at);
CREATE INDEX audit_log_age ON audit_log (at);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (at);
CREATE INDEX runs_task ON runs (task_id, created_at);
CREATE INDEX runs_owner ON runs (owner_id, created_at);
CREATE INDEX runs_state ON runs (state, created_at);
CREATE UNIQUE INDEX steps_name ON steps (run_id, name);
CREATE INDEX steps_due ON steps (state, run_at);
CREATE INDEX steps_lease ON steps (lease_until) WHERE state = 'running';
CREATE INDEX steps_timeout ON steps (wait_until) WHERE state = 'waiting';
CREATE INDEX steps_wait ON steps (wait_key);
CREATE INDEX events_task ON events (task_id, id);
CREATE INDEX events_agent ON events (agent_id, id);
CREATE INDEX events_execution ON events (execution_id, id);
CREATE INDEX events_session ON events (session_id, id);
CREATE INDEX events_build ON events (build_id, id);
CREATE INDEX events_age ON events (at);
)sql";

const char* const kWorkSchemaDown = R"sql(
DROP TABLE events;
DROP TABLE signals;
DROP TABLE steps;
DROP TABLE runs;
DROP TABLE webhook_deliveries;
DROP TABLE git_operations;
DROP TABLE work_sandboxes;
DROP TABLE cost_entries;
DROP TABLE approval_requests;
DROP TABLE task_executions;
DROP TABLE task_dependencies;
DROP TABLE tasks;
DROP TABLE squad_members;
DROP TABLE squads;
DROP TABLE agents;
DROP TABLE idempotency;
DROP TABLE audit_log;
DROP TABLE logins;
DROP TABLE users;
ALTER TABLE snapshots DROP COLUMN node;
ALTER TABLE sandboxes DROP COLUMN node;
ALTER TABLE api_keys DROP COLUMN last_used_at;
ALTER TABLE api_keys DROP COLUMN user_id;
)sql";

}  // namespace caisson::store
