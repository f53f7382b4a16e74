#include "store/database.h"

#include <fcntl.h>

#include "base/fd.h"

namespace caisson::store {
namespace {

// How long a statement waits for another process (a backup, the sqlite3 shell) that holds the file.
constexpr int kBusyTimeoutMs = 5'000;

// synchronous=NORMAL: in WAL mode a commit is in the page cache, not yet on the disk, when it is
// reported. It survives kill -9 of this process; a power cut may lose the last transactions but
// never damages the file. Sandboxes themselves do not survive a power cut, so FULL (an fsync per
// commit, milliseconds on common disks) would buy nothing.
//
// wal_autocheckpoint (pages): the Checkpointer keeps the log small; this only bounds it, at 100 MB,
// should that one fail.
constexpr const char* kSettings =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA wal_autocheckpoint = 25000;"
    "PRAGMA foreign_keys = ON;"
    // SECURITY: what is deleted is overwritten, too.
    "PRAGMA secure_delete = ON;"
    "PRAGMA trusted_schema = OFF;";

Code CodeOf(int result) {
  switch (result & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Code::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Code::kResourceExhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::kPermissionDenied;
    case SQLITE_CONSTRAINT:
      return result == SQLITE_CONSTRAINT_FOREIGNKEY ? Code::kNotFound : Code::kAlreadyExists;
    default:
      return Code::kInternal;
  }
}

Error SqlError(sqlite3* db, std::string_view doing) {
  return Error(CodeOf(sqlite3_extended_errcode(db)),
               fmt::format("{}: {}", doing, sqlite3_errmsg(db)));
}

Error OpenError(const std::string& path, Error error) {
  if (error.code() == Code::kDataLoss)
    return Error(Code::kDataLoss,
                 fmt::format("the database {} is damaged or is not a database ({}): restore a "
                             "backup, or move the file away to start with an empty one",
                             path, error.message()));
  return std::move(error).Context(fmt::format("opening the database {}", path));
}

}  // namespace

Statement::~Statement() {
  if (!raw_) return;
  sqlite3_reset(raw_);
  sqlite3_clear_bindings(raw_);
}

Result<bool> Statement::Step() {
  int result = sqlite3_step(raw_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return tl::unexpected(SqlError(sqlite3_db_handle(raw_), "database"));
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw_, column));
  return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(raw_, column)))
              : std::string();
}

std::optional<Time> Statement::OptionalTimeAt(int column) const {
  if (IsNull(column)) return std::nullopt;
  return TimeAt(column);
}

// A failed bind (wrong index, no memory) leaves NULL, which the NOT NULL columns refuse at Step().
void Statement::Bind(int index, std::string_view text) {
  sqlite3_bind_text64(raw_, index, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
}

void Statement::Bind(int index, int64_t value) { sqlite3_bind_int64(raw_, index, value); }

void Statement::Bind(int index, const std::optional<Time>& value) {
  if (value)
    Bind(index, *value);
  else
    sqlite3_bind_null(raw_, index);
}

Result<Database> Database::Open(const std::string& path) {
  // SECURITY: made here and not by SQLite, so that nobody else can ever open it; the -wal and -shm
  // files take the mode of this one.
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return FailErrno("opening the database {}", path);
  file.Reset();

  sqlite3* raw = nullptr;
  int result =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database(raw);
  if (result != SQLITE_OK) return tl::unexpected(OpenError(path, SqlError(raw, "open")));
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  Status ready = database.Script(kSettings);
  // The settings touch only the first page; this reads the schema, where damage shows first.
  if (ready) ready = database.Script("SELECT count(*) FROM sqlite_schema");
  if (!ready) return tl::unexpected(OpenError(path, std::move(ready).error()));
  return database;
}

Result<Statement> Database::Prepare(const char* sql) {
  auto& kept = statements_[sql];
  if (!kept) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v3(raw_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr))
      return tl::unexpected(SqlError(raw_.get(), "database"));
    kept.reset(raw);
  }
  return Statement(kept.get());
}

Status Database::Script(const std::string& sql) {
  if (sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return tl::unexpected(SqlError(raw_.get(), "database"));
  return {};
}

}  // namespace caisson::store
