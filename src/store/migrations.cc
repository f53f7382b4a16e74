#include "store/migrations.h"

#include <array>

#include "base/log.h"
#include "store/dialect.h"
#include "store/work_schema.h"

namespace caisson::store {
namespace {

// Times are nanoseconds since 1970; maps are JSON objects of strings.
const std::array kMigrations = {
    Migration{1, "keys, sandboxes and their events",
              R"sql(
CREATE TABLE api_keys (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  hash        TEXT NOT NULL UNIQUE,
  hint        TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  revoked_at  INTEGER
) STRICT;

CREATE TABLE sandboxes (
  id                    TEXT PRIMARY KEY,
  key_id                TEXT NOT NULL,
  template_id           TEXT NOT NULL,
  alias                 TEXT NOT NULL,
  state                 TEXT NOT NULL CHECK (state IN ('running', 'paused', 'killed')),
  reason                TEXT NOT NULL,
  metadata              TEXT NOT NULL,
  env                   TEXT NOT NULL,
  secure                INTEGER NOT NULL CHECK (secure IN (0, 1)),
  allow_internet        INTEGER NOT NULL CHECK (allow_internet IN (0, 1)),
  allow_public_traffic  INTEGER NOT NULL CHECK (allow_public_traffic IN (0, 1)),
  network_json          TEXT NOT NULL,
  mask_request_host     TEXT NOT NULL,
  cpus                  INTEGER NOT NULL,
  memory_mb             INTEGER NOT NULL,
  disk_mb               INTEGER NOT NULL,
  timeout_s             INTEGER NOT NULL,
  idempotency_key       TEXT NOT NULL,
  request_hash          TEXT NOT NULL,
  started_at            INTEGER NOT NULL,
  end_at                INTEGER NOT NULL,
  ended_at              INTEGER,
  CHECK ((state = 'killed') = (ended_at IS NOT NULL))
) STRICT;
CREATE INDEX sandboxes_live ON sandboxes (started_at) WHERE state <> 'killed';
CREATE INDEX sandboxes_ended ON sandboxes (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sandboxes_template ON sandboxes (template_id, started_at);

CREATE TABLE sandbox_events (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  sandbox_id  TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
  at          INTEGER NOT NULL,
  type        TEXT NOT NULL,
  level       TEXT NOT NULL CHECK (level IN ('debug', 'info', 'warn', 'error')),
  message     TEXT NOT NULL,
  fields      TEXT NOT NULL
) STRICT;
CREATE INDEX sandbox_events_of ON sandbox_events (sandbox_id, id);
)sql",
              R"sql(
DROP TABLE sandbox_events;
DROP TABLE sandboxes;
DROP TABLE api_keys;
)sql"},
    Migration{2, "limits of keys and sandboxes",
              R"sql(
ALTER TABLE api_keys ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sandboxes ADD COLUMN pids INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN open_files INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN output_kbps INTEGER NOT NULL DEFAULT 0;
)sql",
              R"sql(
ALTER TABLE sandboxes DROP COLUMN output_kbps;
ALTER TABLE sandboxes DROP COLUMN open_files;
ALTER TABLE sandboxes DROP COLUMN pids;
ALTER TABLE api_keys DROP COLUMN limits;
)sql"},
    Migration{3, "paused sandboxes and snapshots",
              R"sql(
ALTER TABLE sandboxes ADD COLUMN auto_pause INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN auto_pause_memory INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN saved_tier TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN saved_why TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN saved_memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN saved_disk_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TABLE snapshots (
  id            TEXT PRIMARY KEY,
  key_id        TEXT NOT NULL,
  sandbox_id    TEXT NOT NULL,
  name          TEXT NOT NULL,
  tag           TEXT NOT NULL,
  template_id   TEXT NOT NULL,
  alias         TEXT NOT NULL,
  env           TEXT NOT NULL,
  secure        INTEGER NOT NULL CHECK (secure IN (0, 1)),
  cpus          INTEGER NOT NULL,
  memory_mb     INTEGER NOT NULL,
  disk_mb       INTEGER NOT NULL,
  pids          INTEGER NOT NULL,
  open_files    INTEGER NOT NULL,
  output_kbps   INTEGER NOT NULL,
  tier          TEXT NOT NULL,
  memory_bytes  INTEGER NOT NULL,
  disk_bytes    INTEGER NOT NULL,
  created_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX snapshots_name ON snapshots (key_id, name, tag) WHERE name <> '';
)sql",
              R"sql(
DROP TABLE snapshots;
ALTER TABLE sandboxes DROP COLUMN saved_disk_bytes;
ALTER TABLE sandboxes DROP COLUMN saved_memory_bytes;
ALTER TABLE sandboxes DROP COLUMN saved_why;
ALTER TABLE sandboxes DROP COLUMN saved_tier;
ALTER TABLE sandboxes DROP COLUMN auto_resume;
ALTER TABLE sandboxes DROP COLUMN auto_pause_memory;
ALTER TABLE sandboxes DROP COLUMN auto_pause;
)sql"},
    Migration{4, "the work platform", kWorkSchemaUp, kWorkSchemaDown},
    Migration{5, "sessions", kSessionSchemaUp, kSessionSchemaDown},
    Migration{6, "builds", kBuildSchemaUp, kBuildSchemaDown},
    Migration{7, "the built-in agent", kLoopSchemaUp, kLoopSchemaDown},
    Migration{8, "logins by key",
              "ALTER TABLE logins ADD COLUMN key_hash TEXT NOT NULL DEFAULT '';",
              "ALTER TABLE logins DROP COLUMN key_hash;"},
    Migration{9, "terminals", kTerminalSchemaUp, kTerminalSchemaDown},
    Migration{10, "changes and links of tasks", kReviewSchemaUp, kReviewSchemaDown},
    Migration{11, "sign-ins and preferences", kPersonSchemaUp, kPersonSchemaDown},
    Migration{12, "kept checkouts", kCheckoutSchemaUp, kCheckoutSchemaDown},
    Migration{13, "pauses and turns of tasks", kPauseSchemaUp, kPauseSchemaDown},
    Migration{14, "outputs of sandboxes and queues of owners", kIndexSchemaUp, kIndexSchemaDown},
    Migration{15, "what builds keep",
              R"sql(
ALTER TABLE build_files ADD COLUMN encoding TEXT NOT NULL DEFAULT '';
ALTER TABLE builds ADD COLUMN preview_note TEXT NOT NULL DEFAULT '';
ALTER TABLE builds ADD COLUMN removal TEXT NOT NULL DEFAULT '';
CREATE INDEX builds_removal ON builds (id) WHERE removal = 'asked';
)sql",
              R"sql(
DROP INDEX builds_removal;
ALTER TABLE builds DROP COLUMN removal;
ALTER TABLE builds DROP COLUMN preview_note;
ALTER TABLE build_files DROP COLUMN encoding;
)sql"},
    Migration{16, "events of squads and runs, and links that hold", kLinkSchemaUp, kLinkSchemaDown},
    Migration{17, "servers, their runs and sandboxes", kNodeSchemaUp, kNodeSchemaDown},
    Migration{18, "pull requests of sessions", kPullSchemaUp, kPullSchemaDown},
    Migration{19, "runs that wait for their start",
              R"sql(
ALTER TABLE runs ADD COLUMN queue_expires_at INTEGER;
CREATE INDEX runs_queue ON runs (queue_expires_at) WHERE queue_expires_at IS NOT NULL;
CREATE INDEX runs_started ON runs (started_at) WHERE started_at IS NOT NULL;
)sql",
              R"sql(
DROP INDEX runs_started;
DROP INDEX runs_queue;
ALTER TABLE runs DROP COLUMN queue_expires_at;
)sql"},
    Migration{20, "tokens of users for GitHub", kTokenSchemaUp, kTokenSchemaDown},
};

Status RunSchema(Database& database, const std::string& sql) {
  return database.Script(database.kind() == Database::Kind::kPostgres ? PostgresSchema(sql) : sql);
}

Status Apply(Database& database, const Migration& step, bool up) {
  Status done = RunSchema(database, up ? step.up : step.down);
  if (done)
    done =
        up ? database.Run("INSERT INTO schema_version (version, name, applied_at) VALUES (?,?,?)",
                          step.version, std::string_view(step.name), Now())
           : database.Run("DELETE FROM schema_version WHERE version = ?", step.version);
  if (done) return {};
  return tl::unexpected(
      std::move(done).error().Context(fmt::format("schema step {} ({})", step.version, step.name)));
}

// Makes one step towards `version`, in a transaction that somebody else has begun. False: nothing
// was left to do.
Result<bool> StepTowards(Database& database, int64_t version) {
  TRY_ASSIGN(int64_t current, SchemaVersion(database));
  int64_t newest = kMigrations.back().version;
  if (current > newest)
    return Fail(Code::kFailedPrecondition,
                "the database has schema version {}, this program knows only versions up to {}: "
                "start the newer caisson that made it, or restore a backup from before",
                current, newest);
  if (current == version) return false;
  bool up = current < version;
  TRY(Apply(database, kMigrations[static_cast<size_t>(up ? current : current - 1)], up));
  return true;
}

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

Result<std::vector<SchemaStep>> ListSchema(Database& database) {
  TRY(SchemaVersion(database));  // makes the table
  std::vector<SchemaStep> steps;
  for (const Migration& step : kMigrations) steps.push_back({step.version, step.name, {}});
  TRY_ASSIGN(Statement rows, database.Query("SELECT version, name, applied_at FROM schema_version "
                                            "ORDER BY version"));
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return steps;
    auto known = static_cast<size_t>(rows.Int(0) - 1);
    if (known < steps.size())
      steps[known].applied_at = rows.TimeAt(2);
    else
      steps.push_back({rows.Int(0), rows.Text(1), rows.TimeAt(2)});
  }
}

Result<int64_t> SchemaVersion(Database& database) {
  TRY(RunSchema(database,
                "CREATE TABLE IF NOT EXISTS schema_version ("
                "version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                "applied_at INTEGER NOT NULL) STRICT"));
  TRY_ASSIGN(Statement found,
             database.Query("SELECT coalesce(max(version), 0) FROM schema_version"));
  TRY(found.Step());
  return found.Int(0);
}

Status Migrate(Database& database, int64_t version) {
  if (version < 0 || version > kMigrations.back().version)
    return Fail(Code::kInvalidArgument, "there is no schema version {}: it is between 0 and {}",
                version, kMigrations.back().version);
  for (;;) {
    TRY(database.Begin(Database::Access::kWrite));
    Result<bool> stepped = StepTowards(database, version);
    Status done = stepped ? database.Commit() : Status(tl::unexpect, stepped.error());
    if (!done) {
      database.Rollback();
      return done;
    }
    if (!*stepped) return {};
  }
}

Status Migrate(Database& database) { return Migrate(database, kMigrations.back().version); }

}  // namespace caisson::store
