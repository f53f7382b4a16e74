#include "store/sqlite_store.h"

#include "base/log.h"
#include "store/rows.h"

namespace caisson::store {
namespace {

using Kind = Worker::Kind;

Result<std::vector<ApiKey>> SelectApiKeys(Database& database) {
  TRY_ASSIGN(
      Statement rows,
      database.Query("SELECT id, name, hash, hint, created_at, revoked_at, limits FROM api_keys "
                     "ORDER BY created_at, id"));
  std::vector<ApiKey> keys;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return keys;
    keys.push_back({.id = rows.Text(0),
                    .name = rows.Text(1),
                    .hash = rows.Text(2),
                    .hint = rows.Text(3),
                    .created_at = rows.TimeAt(4),
                    .revoked_at = rows.OptionalTimeAt(5),
                    .limits = KeyLimitsFromJson(rows.Text(6))});
  }
}

Result<std::vector<SandboxRow>> SelectLive(Database& database) {
  TRY_ASSIGN(Statement rows,
             database.Query("SELECT " CAISSON_SANDBOX_COLUMNS
                            " FROM sandboxes WHERE state <> 'killed' ORDER BY started_at, id"));
  std::vector<SandboxRow> live;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return live;
    live.push_back(ReadSandboxRow(rows));
  }
}

Result<std::optional<SandboxRow>> SelectSandbox(Database& database, const std::string& id) {
  TRY_ASSIGN(Statement rows,
             database.Query("SELECT " CAISSON_SANDBOX_COLUMNS " FROM sandboxes WHERE id = ?", id));
  TRY_ASSIGN(bool found, rows.Step());
  if (!found) return std::optional<SandboxRow>();
  return std::optional(ReadSandboxRow(rows));
}

Result<std::vector<TemplateUse>> SelectTemplateUse(Database& database) {
  TRY_ASSIGN(Statement rows, database.Query("SELECT template_id, count(*), max(started_at) "
                                            "FROM sandboxes GROUP BY template_id"));
  std::vector<TemplateUse> uses;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return uses;
    uses.push_back({rows.Text(0), rows.Int(1), rows.TimeAt(2)});
  }
}

}  // namespace

SqliteStore::SqliteStore(Database database, Database second, asio::any_io_executor executor,
                         StoreOptions options)
    : max_events_(std::max<int64_t>(options.max_events, 1)),
      worker_(std::move(database), std::move(second), std::move(executor),
              {.max_queue = static_cast<size_t>(std::max<int64_t>(options.max_queue, 1)),
               .chore = [days = options.retention_days](Database& db) { DeleteOld(db, days); }}) {}

void SqliteStore::DeleteOld(Database& database, int64_t retention_days) {
  if (retention_days <= 0) return;
  // Their events go with them (ON DELETE CASCADE).
  Status deleted = database.Run("DELETE FROM sandboxes WHERE ended_at < ?",
                                Now() - std::chrono::hours(24 * retention_days));
  if (!deleted)
    LogError("ended sandboxes could not be deleted from the database",
             {{"error", deleted.error().message()}});
  else if (database.changes() > 0)
    LogInfo("deleted ended sandboxes from the database", {{"count", database.changes()}});
}

Status SqliteStore::WriteEvent(Database& database, const SandboxEvent& event) {
  TRY(InsertEventRow(database, event));
  // Deleting a tenth at a time keeps the cost of counting away from most writes.
  int64_t& unpruned = unpruned_[event.sandbox_id];
  if (++unpruned <= max_events_ / 10) return {};
  unpruned = 0;
  return database.Run(
      "DELETE FROM sandbox_events WHERE sandbox_id = ?1 AND id <= (SELECT id FROM sandbox_events "
      "WHERE sandbox_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
      event.sandbox_id, max_events_);
}

Task<Result<std::vector<ApiKey>>> SqliteStore::ListApiKeys() {
  return worker_.Call<std::vector<ApiKey>>(Kind::kRead, SelectApiKeys);
}

Task<Status> SqliteStore::AddApiKey(ApiKey key) {
  return worker_.Submit(Kind::kWrite, [key = std::move(key)](Database& database) {
    return database.Run(
        "INSERT INTO api_keys (id, name, hash, hint, created_at, revoked_at, limits) "
        "VALUES (?,?,?,?,?,?,?)",
        key.id, key.name, key.hash, key.hint, key.created_at, key.revoked_at,
        KeyLimitsToJson(key.limits));
  });
}

Task<Status> SqliteStore::UpdateApiKey(ApiKey key) {
  return worker_.Submit(Kind::kWrite, [key = std::move(key)](Database& database) -> Status {
    TRY(
        database.Run("UPDATE api_keys SET name = ?, limits = ?, "
                     "revoked_at = coalesce(revoked_at, ?) WHERE id = ?",
                     key.name, KeyLimitsToJson(key.limits), key.revoked_at, key.id));
    if (database.changes() == 0)
      return Fail(Code::kNotFound, "there is no API key with the id '{}'", key.id);
    return {};
  });
}

Task<Status> SqliteStore::InsertSandbox(SandboxRow row, SandboxEvent event) {
  return worker_.Submit(
      Kind::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(InsertSandboxRow(database, row));
        return WriteEvent(database, event);
      });
}

Task<Status> SqliteStore::UpdateSandbox(SandboxRow row, SandboxEvent event) {
  return worker_.Submit(
      Kind::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(UpdateSandboxRow(database, row));
        TRY(WriteEvent(database, event));
        if (row.ended_at) unpruned_.erase(row.id);
        return {};
      });
}

Task<Result<std::vector<SandboxRow>>> SqliteStore::ListLiveSandboxes() {
  return worker_.Call<std::vector<SandboxRow>>(Kind::kRead, SelectLive);
}

Task<Result<std::optional<SandboxRow>>> SqliteStore::GetSandbox(std::string id) {
  return worker_.Call<std::optional<SandboxRow>>(
      Kind::kRead,
      [id = std::move(id)](Database& database) { return SelectSandbox(database, id); });
}

Task<Result<std::vector<TemplateUse>>> SqliteStore::ListTemplateUse() {
  return worker_.Call<std::vector<TemplateUse>>(Kind::kRead, SelectTemplateUse);
}

Task<Status> SqliteStore::InsertSnapshot(SnapshotRow row, SandboxEvent event) {
  return worker_.Submit(
      Kind::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(InsertSnapshotRow(database, row));
        return WriteEvent(database, event);
      });
}

Task<Status> SqliteStore::DeleteSnapshot(std::string id) {
  return worker_.Submit(Kind::kWrite, [id = std::move(id)](Database& database) -> Status {
    TRY(database.Run("DELETE FROM snapshots WHERE id = ?", id));
    if (database.changes() == 0)
      return Fail(Code::kNotFound, "there is no snapshot {} in the database", id);
    return {};
  });
}

Task<Result<std::vector<SnapshotRow>>> SqliteStore::ListSnapshots() {
  return worker_.Call<std::vector<SnapshotRow>>(Kind::kRead, SelectSnapshots);
}

Task<Status> SqliteStore::AppendEvent(SandboxEvent event) {
  return worker_.Submit(Kind::kWrite, [this, event = std::move(event)](Database& database) {
    return WriteEvent(database, event);
  });
}

Task<Result<std::vector<SandboxEvent>>> SqliteStore::ListEvents(std::string sandbox_id,
                                                                EventQuery query) {
  return worker_.Call<std::vector<SandboxEvent>>(
      Kind::kRead, [id = std::move(sandbox_id), query = std::move(query)](Database& database) {
        return SelectEvents(database, id, query);
      });
}

Task<Status> SqliteStore::Close() { return worker_.Close(); }

}  // namespace caisson::store
