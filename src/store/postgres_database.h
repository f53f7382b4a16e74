// A connection to PostgreSQL as a Database. Every wait has a deadline, on both sides.
#pragma once

#include <chrono>
#include <map>

#include "store/database.h"
#include "store/libpq.h"

namespace caisson::store {

struct PostgresOptions {
  std::chrono::seconds connect_timeout{5};
  // The server ends a statement after this time; we give the connection up a little later.
  std::chrono::milliseconds statement_timeout{30'000};
  std::string tag;  // tells announcements of this server from those of others
};

class PostgresDatabase : public Database {
 public:
  // `url` is what libpq calls a connection URI; its parameters win over ours. A database that
  // cannot be reached is kUnavailable, one that cannot be used kFailedPrecondition.
  static Result<std::unique_ptr<PostgresDatabase>> Open(const std::string& url,
                                                        PostgresOptions options = {});

  Kind kind() const override { return Kind::kPostgres; }
  using Database::Query;
  // Text that PostgreSQL cannot hold (no UTF-8, or a zero byte) is stored with U+FFFD instead.
  //
  // PostgreSQL ends a transaction at its first error; SQLite does not, and jobs may go on after an
  // error they expected. When one does, fault() is kConflict and its second run has a savepoint
  // around each statement.
  Result<Statement> Query(std::string_view sql, const std::vector<Value>& values) override;
  Status Script(const std::string& sql) override;
  int64_t changes() const override { return changes_; }
  Status Begin(Access access) override;
  Status Commit() override;
  void Rollback() override;
  Status AnnounceEvents() override;
  Fault fault() const override { return fault_; }

  // Announcements of events by other servers. Listen() once, then wait.
  Status Listen();
  // True: there was one. Returns when `wake_fd` is readable, too.
  Result<bool> WaitForAnnouncement(int wake_fd, std::chrono::milliseconds most);

 private:
  struct Closer {
    const Libpq* pq;
    void operator()(PGconn* raw) const { pq->finish(raw); }
    void operator()(PGresult* raw) const { pq->clear(raw); }
  };
  using Handle = std::unique_ptr<PGconn, Closer>;
  using Answer = std::unique_ptr<PGresult, Closer>;
  friend class PostgresRows;

  PostgresDatabase(const Libpq& pq, PGconn* raw, PostgresOptions options)
      : pq_(pq), options_(std::move(options)), raw_(raw, Closer{&pq}) {}

  Status CheckServer();
  Result<std::string> Prepare(std::string_view sql, const std::vector<Value>& values);
  Result<Answer> RunPrepared(const std::string& name, const std::vector<Value>& values);
  // Runs a text without values; `sql` may be several statements.
  Result<Answer> RunText(const std::string& sql);
  // Sends what is to be sent and waits for the last answer of what was asked.
  Result<Answer> Finish(bool sent);
  Status Wait(short events, std::chrono::steady_clock::time_point end);
  Error Lost(std::string_view why);
  Error AnswerError(PGresult* answer);

  const Libpq& pq_;
  PostgresOptions options_;
  Handle raw_;
  std::map<std::string, std::string, std::less<>> statements_;  // the name of each text
  int64_t prepared_ = 0;
  int64_t changes_ = 0;
  Fault fault_ = Fault::kNone;
  bool failed_ = false;        // a statement of this transaction failed
  bool careful_ = false;       // savepoints around each statement
  bool careful_next_ = false;  // ... in the next transaction
};

}  // namespace caisson::store
