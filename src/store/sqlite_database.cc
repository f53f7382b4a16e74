#include "store/sqlite_database.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"

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
    // The server may write nowhere but beside its database, so what SQLite would put into temporary
    // files (the undo log of a large batch) must stay in memory.
    "PRAGMA temp_store = MEMORY;"
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
      switch (result) {
        case SQLITE_CONSTRAINT_FOREIGNKEY:
          return Code::kNotFound;
        case SQLITE_CONSTRAINT_UNIQUE:
        case SQLITE_CONSTRAINT_PRIMARYKEY:
        case SQLITE_CONSTRAINT_ROWID:
          return Code::kAlreadyExists;
        default:
          return Code::kInvalidArgument;
      }
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

// SQLite undoes a whole transaction when it meets an error of the disk, say, or has no memory; what
// came after it would then be committed statement by statement.
template <class Call>
Result<int> SqliteDatabase::Try(Call call) {
  if (undone_) return tl::unexpected(*undone_);
  bool within = !sqlite3_get_autocommit(raw_.get());
  int result = call();
  if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return result;
  Error error = SqlError(raw_.get(), "database");
  if (within && sqlite3_get_autocommit(raw_.get())) undone_ = error;
  return tl::unexpected(std::move(error));
}

// A prepared statement on loan from its Database; reset when it goes away.
class SqliteRows : public Rows {
 public:
  SqliteRows(SqliteDatabase& database, sqlite3_stmt* raw) : database_(database), raw_(raw) {}
  ~SqliteRows() override {
    sqlite3_reset(raw_);
    sqlite3_clear_bindings(raw_);
  }

  // A failed bind (wrong index, no memory) leaves NULL, which the NOT NULL columns refuse at
  // Step().
  void Bind(int index, const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value))
      sqlite3_bind_text64(raw_, index, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    else if (const auto* number = std::get_if<int64_t>(&value))
      sqlite3_bind_int64(raw_, index, *number);
    else if (const auto* real = std::get_if<double>(&value))
      sqlite3_bind_double(raw_, index, *real);
    else
      sqlite3_bind_null(raw_, index);
  }

  Result<bool> Step() override {
    TRY_ASSIGN(int result, database_.Try([this] { return sqlite3_step(raw_); }));
    return result == SQLITE_ROW;
  }
  int64_t Int(int column) const override { return sqlite3_column_int64(raw_, column); }
  double Real(int column) const override { return sqlite3_column_double(raw_, column); }
  std::string Text(int column) const override {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw_, column));
    return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(raw_, column)))
                : std::string();
  }
  bool IsNull(int column) const override {
    return sqlite3_column_type(raw_, column) == SQLITE_NULL;
  }

 private:
  SqliteDatabase& database_;
  sqlite3_stmt* raw_;
};

Result<std::unique_ptr<Database>> SqliteDatabase::Open(const std::string& path) {
  // SECURITY: made here and not by SQLite, so that nobody else can ever open it; the -wal and -shm
  // files take the mode of this one.
  //
  // One that is there is not opened here: closing it again would drop the locks of all connections
  // that this process has to it, and another program that ends would then take itself for the last
  // one and remove the log that is still written to.
  UniqueFd made(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made && errno != EEXIST) return FailErrno("opening the database {}", path);
  made.Reset();
  struct stat info{};
  if (lstat(path.c_str(), &info)) return FailErrno("opening the database {}", path);
  if (!S_ISREG(info.st_mode))
    return Fail(Code::kInvalidArgument, "opening the database {}: it is not a file", path);

  sqlite3* raw = nullptr;
  int result =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(raw));
  if (result != SQLITE_OK) return tl::unexpected(OpenError(path, SqlError(raw, "open")));
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  Status ready = database->Script(kSettings);
  // The settings touch only the first page; this reads the schema, where damage shows first.
  if (ready) ready = database->Script("SELECT count(*) FROM sqlite_schema");
  if (!ready) return tl::unexpected(OpenError(path, std::move(ready).error()));
  return database;
}

Result<Statement> SqliteDatabase::Query(std::string_view sql, const std::vector<Value>& values) {
  auto kept = statements_.find(sql);
  if (kept == statements_.end()) {
    sqlite3_stmt* raw = nullptr;
    TRY(Try([&] {
      return sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    }));
    kept = statements_.emplace(sql, raw).first;
  }
  auto rows = std::make_unique<SqliteRows>(*this, kept->second.get());
  for (size_t i = 0; i < values.size(); ++i) rows->Bind(static_cast<int>(i) + 1, values[i]);
  return Statement(std::move(rows));
}

Status SqliteDatabase::Script(const std::string& sql) {
  TRY(Try([&] { return sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr); }));
  return {};
}

// IMMEDIATE: takes the file's one lock for writers now; a later upgrade could fail half way.
Status SqliteDatabase::Begin(Access access) {
  undone_.reset();
  return Run(access == Access::kWrite ? "BEGIN IMMEDIATE" : "BEGIN", std::vector<Value>());
}

Status SqliteDatabase::Commit() { return Run("COMMIT", std::vector<Value>()); }

void SqliteDatabase::Rollback() {
  undone_.reset();
  if (sqlite3_get_autocommit(raw_.get())) return;
  Status undone = Run("ROLLBACK", std::vector<Value>());
  if (!undone) LogError("rollback failed", {{"error", undone.error().message()}});
}

}  // namespace caisson::store
