// A thin layer over sqlite3: owned handles, errors as values, prepared statements kept. One thread
// at a time; the store's own.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace caisson::store {

class Database;

// A prepared statement on loan from its Database; reset when it goes away. Columns count from 0 and
// are valid until the next Step().
class Statement {
 public:
  Statement(Statement&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // True: a row is there. False: done.
  Result<bool> Step();

  int64_t Int(int column) const { return sqlite3_column_int64(raw_, column); }
  bool Bool(int column) const { return Int(column) != 0; }
  std::string Text(int column) const;
  bool IsNull(int column) const { return sqlite3_column_type(raw_, column) == SQLITE_NULL; }
  Time TimeAt(int column) const { return FromUnixNanos(Int(column)); }
  std::optional<Time> OptionalTimeAt(int column) const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* raw) : raw_(raw) {}
  void Bind(int index, std::string_view text);
  void Bind(int index, int64_t value);
  void Bind(int index, Time value) { Bind(index, UnixNanos(value)); }
  void Bind(int index, const std::optional<Time>& value);

  sqlite3_stmt* raw_;
};

class Database {
 public:
  // Opens or creates the file (mode 0600: rows hold environment variables, which hold secrets) with
  // the settings every connection needs. A file that is no database, or a damaged one, is
  // kDataLoss with a text that says what to do.
  static Result<Database> Open(const std::string& path);

  // Starts a query: parameters are bound in order. `sql` must be a literal (or live as long as the
  // database): its statement is prepared once and kept.
  template <class... Args>
  Result<Statement> Query(const char* sql, const Args&... args) {
    TRY_ASSIGN(Statement statement, Prepare(sql));
    [[maybe_unused]] int index = 0;
    (statement.Bind(++index, args), ...);
    return statement;
  }
  // Runs a statement that gives no rows.
  template <class... Args>
  Status Run(const char* sql, const Args&... args) {
    TRY_ASSIGN(Statement statement, Query(sql, args...));
    TRY(statement.Step());
    return {};
  }
  // Runs a script of several statements, once.
  Status Script(const std::string& sql);

  // Rows touched by the last INSERT, UPDATE or DELETE.
  int64_t changes() const { return sqlite3_changes64(raw_.get()); }

 private:
  struct Closer {
    void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
    void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
  };
  explicit Database(sqlite3* raw) : raw_(raw) {}
  Result<Statement> Prepare(const char* sql);

  std::unique_ptr<sqlite3, Closer> raw_;
  std::map<const char*, std::unique_ptr<sqlite3_stmt, Closer>> statements_;
};

}  // namespace caisson::store
