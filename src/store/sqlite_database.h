// A SQLite file as a Database.
#pragma once

#include <sqlite3.h>

#include <map>

#include "store/database.h"

namespace caisson::store {

class SqliteDatabase : public Database {
 public:
  // Opens or creates the file (mode 0600: rows hold environment variables, which hold secrets) with
  // the settings every connection needs. A file that is no database, or a damaged one, is
  // kDataLoss with a text that says what to do.
  static Result<std::unique_ptr<Database>> Open(const std::string& path);

  Kind kind() const override { return Kind::kSqlite; }
  using Database::Query;
  Result<Statement> Query(std::string_view sql, const std::vector<Value>& values) override;
  Status Script(const std::string& sql) override;
  int64_t changes() const override { return sqlite3_changes64(raw_.get()); }
  Status Begin(Access access) override;
  Status Commit() override;
  void Rollback() override;
  Fault fault() const override { return undone_ ? Fault::kUndone : Fault::kNone; }

 private:
  friend class SqliteRows;
  struct Closer {
    void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
    void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
  };
  explicit SqliteDatabase(sqlite3* raw) : raw_(raw) {}

  // Every call that may run SQL goes through here: `call` gives a result of SQLite, which is handed
  // on if it is no error.
  template <class Call>
  Result<int> Try(Call call);

  std::unique_ptr<sqlite3, Closer> raw_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Closer>, std::less<>> statements_;
  std::optional<Error> undone_;  // what made SQLite undo the transaction
};

}  // namespace caisson::store
