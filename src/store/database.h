// One connection to a database, SQLite or PostgreSQL: errors as values, prepared statements kept,
// one dialect of SQL (dialect.h) for both. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "store/value.h"

namespace caisson::store {

// What a query found, as its database gives it; users have a Statement.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual Result<bool> Step() = 0;
  virtual int64_t Int(int column) const = 0;
  virtual double Real(int column) const = 0;
  virtual std::string Text(int column) const = 0;
  virtual bool IsNull(int column) const = 0;
};

// A query that was started. Columns count from 0 and are valid until the next Step(). It must end
// before its Database does.
class Statement {
 public:
  explicit Statement(std::unique_ptr<Rows> rows) : rows_(std::move(rows)) {}

  // True: a row is there. False: done.
  Result<bool> Step() { return rows_->Step(); }

  int64_t Int(int column) const { return rows_->Int(column); }
  bool Bool(int column) const { return Int(column) != 0; }
  double Real(int column) const { return rows_->Real(column); }
  std::string Text(int column) const { return rows_->Text(column); }
  bool IsNull(int column) const { return rows_->IsNull(column); }
  Time TimeAt(int column) const { return FromUnixNanos(Int(column)); }
  std::optional<Time> OptionalTimeAt(int column) const {
    return IsNull(column) ? std::nullopt : std::optional(TimeAt(column));
  }

 private:
  std::unique_ptr<Rows> rows_;
};

class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  enum class Kind { kSqlite, kPostgres };
  virtual Kind kind() const = 0;

  // Starts a query: parameters are bound in order. The statement is prepared once and kept, so
  // there must be few different texts.
  virtual Result<Statement> Query(std::string_view sql, const std::vector<Value>& values) = 0;
  template <class... Args>
  Result<Statement> Query(std::string_view sql, const Args&... args) {
    return Query(sql, std::vector<Value>{ToValue(args)...});
  }
  // Runs a statement that gives no rows.
  template <class... Args>
  Status Run(std::string_view sql, const Args&... args) {
    return Run(sql, std::vector<Value>{ToValue(args)...});
  }
  Status Run(std::string_view sql, const std::vector<Value>& values);
  // Runs a script of several statements, once; for statements without values.
  virtual Status Script(const std::string& sql) = 0;
  // Rows touched by the last INSERT, UPDATE or DELETE.
  virtual int64_t changes() const = 0;

  // Transactions that write have one order in the whole database, whoever makes them: Begin() waits
  // until the one before is over, so that each sees all that was done before it.
  enum class Access { kRead, kWrite };
  virtual Status Begin(Access access) = 0;
  virtual Status Commit() = 0;
  // Undoes the transaction; nothing if there is none.
  virtual void Rollback() = 0;

  // Tells the other servers, once this transaction is committed, that events were appended.
  virtual Status AnnounceEvents() { return {}; }

  // Why the transaction cannot go on although its job did nothing wrong.
  enum class Fault {
    kNone,
    kConflict,  // with another one: it must be run again
    kLost,      // the connection is gone: it must be run again on a new one
    // The database has undone it by itself, for want of disk or memory perhaps: it may be run
    // again. Until then, or Rollback(), all statements and Commit() fail with the error that undid
    // it.
    kUndone,
  };
  virtual Fault fault() const { return Fault::kNone; }

 protected:
  Database() = default;
};

}  // namespace caisson::store
