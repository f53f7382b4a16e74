#include "store/sql_store.h"

#include "store/rows.h"

namespace caisson::store {
namespace {

using Access = Database::Access;

constexpr std::chrono::seconds kDay{86'400};
// While old rows are left to delete: others have their turn in between.
constexpr std::chrono::seconds kSoon{1};

Result<std::vector<ApiKey>> SelectApiKeys(Database& database) {
  TRY_ASSIGN(Statement rows,
             database.Query("SELECT id, name, hash, hint, created_at, revoked_at, limits, user_id, "
                            "last_used_at FROM api_keys "
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
                    .limits = KeyLimitsFromJson(rows.Text(6)),
                    .user_id = rows.Text(7),
                    .last_used_at = rows.OptionalTimeAt(8)});
  }
}

Result<std::vector<SandboxRow>> SelectLive(Database& database, const std::string& node) {
  TRY_ASSIGN(Statement rows, database.Query("SELECT " CAISSON_SANDBOX_COLUMNS
                                            " FROM sandboxes WHERE state <> 'killed' AND node = ? "
                                            "ORDER BY started_at, id",
                                            node));
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

SqlStore::SqlStore(std::unique_ptr<Database> first, Worker::OpenDatabase open,
                   asio::any_io_executor executor, StoreOptions options)
    : executor_(executor),
      options_(std::move(options)),
      writer_(std::move(first), open, executor,
              {.max_queue = static_cast<size_t>(std::max<int64_t>(options_.max_queue, 1)),
               .patience = options_.patience,
               .chore = [retention = options_.retention](Database& database) {
                 return DeleteOld(database, retention) ? kSoon : kDay;
               }}) {}

void SqlStore::Listen(PostgresListener::Open open) {
  // Two connections are the writer's and the listener's.
  auto most = static_cast<size_t>(std::max<int64_t>(options_.pool_max - 2, 1));
  auto kept = static_cast<size_t>(std::max<int64_t>(options_.pool_min - 2, 1));
  readers_.emplace(
      nullptr, [open] { return Result<std::unique_ptr<Database>>(open()); }, executor_,
      Worker::Options{
          .max_queue = static_cast<size_t>(std::max<int64_t>(options_.max_queue, 1)),
          .max_batch = 1,
          .min_threads = std::min(kept, most),
          .max_threads = most,
          .patience = options_.patience,
      });
  std::weak_ptr<std::function<void()>> called = on_events_;
  listener_.emplace(open, [called, executor = executor_] {
    asio::post(executor, [called] {
      if (auto on_events = called.lock(); on_events && *on_events) (*on_events)();
    });
  });
}

void SqlStore::StartCheckpoints(std::unique_ptr<Database> second) {
  checkpointer_.emplace(std::move(second));
}

Task<Status> SqlStore::Submit(bool write, std::function<Status(Transaction&)> job) {
  auto emitted = std::make_shared<bool>(false);
  Worker& worker = write ? writer_ : readers();
  Status done = co_await worker.Submit(write ? Access::kWrite : Access::kRead,
                                       [job = std::move(job), emitted](Database& database) {
                                         Transaction transaction(database);
                                         Status status = job(transaction);
                                         *emitted = transaction.emitted();
                                         return status;
                                       });
  if (done && *emitted && *on_events_) (*on_events_)();
  co_return done;
}

Status SqlStore::WriteEvent(Database& database, const SandboxEvent& event) {
  TRY(InsertEventRow(database, event));
  // Deleting a tenth at a time keeps the cost of counting away from most writes.
  int64_t max_events = std::max<int64_t>(options_.max_events, 1);
  int64_t& unpruned = unpruned_[event.sandbox_id];
  if (++unpruned <= max_events / 10) return {};
  unpruned = 0;
  return database.Run(
      "DELETE FROM sandbox_events WHERE sandbox_id = ?1 AND id <= (SELECT id FROM sandbox_events "
      "WHERE sandbox_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
      event.sandbox_id, max_events);
}

Task<Result<std::vector<ApiKey>>> SqlStore::ListApiKeys() {
  return readers().Call<std::vector<ApiKey>>(Access::kRead, SelectApiKeys);
}

Task<Status> SqlStore::AddApiKey(ApiKey key) {
  return writer_.Submit(Access::kWrite, [key = std::move(key)](Database& database) {
    return database.Run(
        "INSERT INTO api_keys (id, name, hash, hint, created_at, revoked_at, limits, "
        "user_id) VALUES (?,?,?,?,?,?,?,?)",
        key.id, key.name, key.hash, key.hint, key.created_at, key.revoked_at,
        KeyLimitsToJson(key.limits), key.user_id);
  });
}

Task<Status> SqlStore::UpdateApiKey(ApiKey key) {
  return writer_.Submit(Access::kWrite, [key = std::move(key)](Database& database) -> Status {
    TRY(database.Run(
        "UPDATE api_keys SET name = ?, limits = ?, last_used_at = ?, "
        "revoked_at = coalesce(revoked_at, ?) WHERE id = ?",
        key.name, KeyLimitsToJson(key.limits), key.last_used_at, key.revoked_at, key.id));
    if (database.changes() == 0)
      return Fail(Code::kNotFound, "there is no API key with the id '{}'", key.id);
    return {};
  });
}

Task<Status> SqlStore::InsertSandbox(SandboxRow row, SandboxEvent event) {
  return writer_.Submit(
      Access::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(InsertSandboxRow(database, row, options_.node));
        return WriteEvent(database, event);
      });
}

Task<Status> SqlStore::UpdateSandbox(SandboxRow row, SandboxEvent event) {
  return writer_.Submit(
      Access::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(UpdateSandboxRow(database, row));
        TRY(WriteEvent(database, event));
        if (row.ended_at) unpruned_.erase(row.id);
        return {};
      });
}

Task<Result<std::vector<SandboxRow>>> SqlStore::ListLiveSandboxes() {
  return readers().Call<std::vector<SandboxRow>>(
      Access::kRead, [this](Database& database) { return SelectLive(database, options_.node); });
}

Task<Result<std::optional<SandboxRow>>> SqlStore::GetSandbox(std::string id) {
  return readers().Call<std::optional<SandboxRow>>(
      Access::kRead,
      [id = std::move(id)](Database& database) { return SelectSandbox(database, id); });
}

Task<Result<std::string>> SqlStore::FindNode(std::string key_id, std::string id) {
  return readers().Call<std::string>(
      Access::kRead,
      [this, key_id = std::move(key_id),
       id = std::move(id)](Database& database) -> Result<std::string> {
        TRY_ASSIGN(Statement row,
                   database.Query("SELECT node FROM sandboxes WHERE id = ? AND key_id = ? "
                                  "AND node <> ? AND state <> 'killed'",
                                  id, key_id, options_.node));
        TRY_ASSIGN(bool found, row.Step());
        return found ? row.Text(0) : std::string();
      });
}

Task<Result<std::vector<TemplateUse>>> SqlStore::ListTemplateUse() {
  return readers().Call<std::vector<TemplateUse>>(Access::kRead, SelectTemplateUse);
}

Task<Status> SqlStore::InsertSnapshot(SnapshotRow row, SandboxEvent event) {
  return writer_.Submit(
      Access::kWrite,
      [this, row = std::move(row), event = std::move(event)](Database& database) -> Status {
        TRY(InsertSnapshotRow(database, row, options_.node));
        return WriteEvent(database, event);
      });
}

Task<Status> SqlStore::DeleteSnapshot(std::string id) {
  return writer_.Submit(Access::kWrite, [id = std::move(id)](Database& database) -> Status {
    TRY(database.Run("DELETE FROM snapshots WHERE id = ?", id));
    if (database.changes() == 0)
      return Fail(Code::kNotFound, "there is no snapshot {} in the database", id);
    return {};
  });
}

Task<Result<std::vector<SnapshotRow>>> SqlStore::ListSnapshots() {
  return readers().Call<std::vector<SnapshotRow>>(Access::kRead, [this](Database& database) {
    return SelectSnapshots(database, options_.node);
  });
}

Task<Status> SqlStore::AppendEvent(SandboxEvent event) {
  return writer_.Submit(Access::kWrite, [this, event = std::move(event)](Database& database) {
    return WriteEvent(database, event);
  });
}

Task<Result<std::vector<SandboxEvent>>> SqlStore::ListEvents(std::string sandbox_id,
                                                             EventQuery query) {
  return readers().Call<std::vector<SandboxEvent>>(
      Access::kRead, [id = std::move(sandbox_id), query = std::move(query)](Database& database) {
        return SelectEvents(database, id, query);
      });
}

DatabasePool SqlStore::pool() {
  DatabasePool sum;
  auto add = [&sum](const Worker::Numbers& numbers) {
    sum.connections += static_cast<int64_t>(numbers.connections);
    sum.busy += static_cast<int64_t>(numbers.busy);
    sum.waiting += static_cast<int64_t>(numbers.waiting);
  };
  add(writer_.numbers());
  if (readers_) add(readers_->numbers());
  return sum;
}

Task<Status> SqlStore::Close() {
  listener_.reset();
  checkpointer_.reset();
  Status read = readers_ ? co_await readers_->Close() : Status();
  Status written = co_await writer_.Close();
  co_return written ? read : written;
}

}  // namespace caisson::store
