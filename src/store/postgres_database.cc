#include "store/postgres_database.h"

#include <poll.h>

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "store/dialect.h"

namespace caisson::store {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kGrace{5'000};
// More texts than this are a sign of texts made up as they go; the old ones are dropped.
constexpr size_t kMaxPrepared = 1'000;
// Any number that no other program on the same database uses: "caisson" in ASCII.
constexpr int64_t kWriterLock = 0x63616973736f6e;
constexpr const char* kChannel = "caisson_events";

// From PostgreSQL's pg_type: what a parameter is, so that it need not be guessed from the text.
constexpr Oid kUnknownType = 0, kInt8 = 20, kText = 25, kFloat8 = 701;

Oid TypeOf(const Value& value) {
  constexpr std::array kTypes = {kUnknownType, kInt8, kFloat8, kText};
  return kTypes[value.index()];
}

// By SQLSTATE, whole or its class.
Code CodeOf(std::string_view state) {
  std::string_view family = state.substr(0, 2);
  if (state == "23505") return Code::kAlreadyExists;
  if (state == "23503") return Code::kNotFound;
  if (family == "23" || family == "22") return Code::kInvalidArgument;
  if (family == "40") return Code::kAborted;
  if (family == "53" || family == "54") return Code::kResourceExhausted;
  if (family == "28" || state == "42501" || state == "25006") return Code::kPermissionDenied;
  if (family == "08" || family == "57" || family == "55" || state == "25P03")
    return Code::kUnavailable;
  if (state == "XX001" || state == "XX002") return Code::kDataLoss;
  return Code::kInternal;
}

// What libpq and the server say ends with a newline and may have several lines.
std::string OneLine(const char* text) {
  std::string line(Trim(text ? text : ""));
  for (size_t at; (at = line.find('\n')) != std::string::npos;) line.replace(at, 1, "; ");
  return line;
}

std::string Storable(const std::string& text) {
  std::string clean = ToUtf8(text);
  for (size_t at = 0; (at = clean.find('\0', at)) != std::string::npos;)
    clean.replace(at, 1, "\xef\xbf\xbd");
  return clean;
}

// The values as libpq wants them: numbers as text, texts as they are.
struct Parameters {
  explicit Parameters(const std::vector<Value>& values) {
    texts.reserve(values.size());
    for (const Value& value : values) {
      bool null = std::holds_alternative<std::monostate>(value);
      const auto* text = std::get_if<std::string>(&value);
      if (text)
        texts.push_back(Storable(*text));
      else if (const auto* number = std::get_if<int64_t>(&value))
        texts.push_back(std::to_string(*number));
      else if (const auto* real = std::get_if<double>(&value))
        texts.push_back(fmt::format("{}", *real));
      else
        texts.emplace_back();
      pointers.push_back(null ? nullptr : texts.back().c_str());
      lengths.push_back(static_cast<int>(texts.back().size()));
      formats.push_back(text ? 1 : 0);
      types.push_back(TypeOf(value));
    }
  }
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  std::vector<int> lengths, formats;
  std::vector<Oid> types;
};

}  // namespace

// All rows of an answer, which libpq has in memory.
class PostgresRows : public Rows {
 public:
  PostgresRows(const Libpq& pq, PostgresDatabase::Answer answer)
      : pq_(pq), answer_(std::move(answer)), count_(pq.ntuples(answer_.get())) {}

  Result<bool> Step() override { return ++at_ < count_; }
  int64_t Int(int column) const override { return ParseInt<int64_t>(View(column)).value_or(0); }
  double Real(int column) const override {
    return IsNull(column) ? 0 : strtod(pq_.getvalue(answer_.get(), at_, column), nullptr);
  }
  std::string Text(int column) const override { return std::string(View(column)); }
  bool IsNull(int column) const override { return pq_.getisnull(answer_.get(), at_, column) != 0; }

 private:
  std::string_view View(int column) const {
    return {pq_.getvalue(answer_.get(), at_, column),
            static_cast<size_t>(pq_.getlength(answer_.get(), at_, column))};
  }

  const Libpq& pq_;
  PostgresDatabase::Answer answer_;
  int count_, at_ = -1;
};

Result<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(const std::string& url,
                                                                 PostgresOptions options) {
  TRY_ASSIGN(const Libpq* pq, Libpq::Get());
  // SECURITY: libpq's own words on a bad URL repeat parts of it, and so perhaps its password.
  PQconninfoOption* parsed = pq->conninfoParse(url.c_str(), nullptr);
  if (!parsed)
    return Fail(Code::kInvalidArgument,
                "the database URL is not one that PostgreSQL understands: "
                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
  pq->conninfoFree(parsed);
  std::string timeout = std::to_string(options.connect_timeout.count());
  // The URL is expanded where it stands: what comes before it are defaults. Keepalives find a
  // server that went without a word while we wait for its answer.
  const char* names[] = {"connect_timeout",
                         "application_name",
                         "keepalives_idle",
                         "keepalives_interval",
                         "keepalives_count",
                         "tcp_user_timeout",
                         "dbname",
                         "client_encoding",
                         nullptr};
  const char* values[] = {timeout.c_str(), "caisson",   "10",   "5",    "3",
                          "20000",         url.c_str(), "UTF8", nullptr};
  PGconn* raw = pq->connectdbParams(names, values, 1);
  std::unique_ptr<PostgresDatabase> database(new PostgresDatabase(*pq, raw, std::move(options)));
  if (!raw) return Fail(Code::kResourceExhausted, "there is no memory for a database connection");
  if (pq->status(raw) != CONNECTION_OK)
    return Fail(Code::kUnavailable, "connecting to the database: {}",
                OneLine(pq->errorMessage(raw)));
  pq->setNoticeProcessor(raw, [](void*, const char*) {}, nullptr);
  pq->setnonblocking(raw, 1);
  TRY(database->CheckServer());
  return database;
}

Status PostgresDatabase::CheckServer() {
  const char* encoding = pq_.parameterStatus(raw_.get(), "server_encoding");
  if (!encoding || std::string_view(encoding) != "UTF8")
    return Fail(Code::kFailedPrecondition,
                "the database is not encoded in UTF8: create it with ENCODING 'UTF8'");
  // A transaction that a dying server leaves open holds the lock of all writers; PostgreSQL ends
  // it.
  return Script(
      fmt::format("SET statement_timeout = {0}; SET lock_timeout = {0}; "
                  "SET idle_in_transaction_session_timeout = {0}; "
                  "SET default_transaction_isolation = 'read committed'",
                  options_.statement_timeout.count()));
}

Error PostgresDatabase::Lost(std::string_view why) {
  fault_ = Fault::kLost;
  return Error(Code::kUnavailable, fmt::format("the database connection was lost: {}", why));
}

Status PostgresDatabase::Wait(short events, Clock::time_point end) {
  pollfd item{.fd = pq_.socket(raw_.get()), .events = events, .revents = 0};
  auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  int ready = left.count() <= 0 ? 0 : poll(&item, 1, static_cast<int>(left.count()));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  if (ready < 0) return FailErrno("waiting for the database");
  // What comes later would be taken for the answer to something else.
  return tl::unexpected(Lost("it does not answer"));
}

Result<PostgresDatabase::Answer> PostgresDatabase::Finish(bool sent) {
  PGconn* raw = raw_.get();
  auto lost = [&] { return tl::unexpected(Lost(OneLine(pq_.errorMessage(raw)))); };
  if (!sent) return lost();
  auto end = Clock::now() + options_.statement_timeout + kGrace;
  while (int left = pq_.flush(raw)) {
    if (left < 0) return lost();
    TRY(Wait(POLLIN | POLLOUT, end));
    if (!pq_.consumeInput(raw)) return lost();
  }
  Answer last(nullptr, Closer{&pq_});
  for (;;) {
    while (pq_.isBusy(raw)) {
      TRY(Wait(POLLIN, end));
      if (!pq_.consumeInput(raw)) return lost();
    }
    PGresult* next = pq_.getResult(raw);
    if (!next) break;
    last.reset(next);
  }
  if (pq_.status(raw) != CONNECTION_OK) return lost();
  if (!last) return lost();
  ExecStatusType status = pq_.resultStatus(last.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    return tl::unexpected(AnswerError(last.get()));
  changes_ = ParseInt<int64_t>(pq_.cmdTuples(last.get())).value_or(0);
  return last;
}

Error PostgresDatabase::AnswerError(PGresult* answer) {
  const char* state = pq_.resultErrorField(answer, PG_DIAG_SQLSTATE);
  const char* text = pq_.resultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
  std::string_view code = state ? state : "";
  // The server says that it ends this connection: shut down, crashed, or told to.
  if (code.starts_with("57P") || code.starts_with("08") || code == "25P03")
    return Lost(OneLine(text));
  failed_ = pq_.transactionStatus(raw_.get()) == PQTRANS_INERROR;
  if (code == "40001" || code == "40P01") fault_ = Fault::kConflict;
  if (code == "57014" || code == "55P03")
    return Error(Code::kUnavailable, fmt::format("the database took too long: {}", OneLine(text)));
  return Error(CodeOf(code), fmt::format("database: {}", OneLine(text)));
}

Result<PostgresDatabase::Answer> PostgresDatabase::RunText(const std::string& sql) {
  return Finish(pq_.sendQuery(raw_.get(), sql.c_str()));
}

Status PostgresDatabase::Script(const std::string& sql) {
  TRY(RunText(sql));
  failed_ = false;
  return {};
}

Result<std::string> PostgresDatabase::Prepare(std::string_view sql,
                                              const std::vector<Value>& values) {
  if (auto kept = statements_.find(sql); kept != statements_.end()) return kept->second;
  if (statements_.size() >= kMaxPrepared) {
    TRY(RunText("DEALLOCATE ALL"));
    statements_.clear();
  }
  std::string name = fmt::format("s{}", ++prepared_);
  Parameters parameters(values);
  TRY(Finish(pq_.sendPrepare(raw_.get(), name.c_str(), PostgresQuery(sql).c_str(),
                             static_cast<int>(values.size()), parameters.types.data())));
  statements_.emplace(sql, name);
  return name;
}

Result<PostgresDatabase::Answer> PostgresDatabase::RunPrepared(const std::string& name,
                                                               const std::vector<Value>& values) {
  Parameters parameters(values);
  return Finish(pq_.sendQueryPrepared(raw_.get(), name.c_str(), static_cast<int>(values.size()),
                                      parameters.pointers.data(), parameters.lengths.data(),
                                      parameters.formats.data(), 0));
}

Result<Statement> PostgresDatabase::Query(std::string_view sql, const std::vector<Value>& values) {
  if (fault_ == Fault::kNone && failed_ && !careful_) {
    careful_next_ = true;
    fault_ = Fault::kConflict;
  }
  if (fault_ != Fault::kNone)
    return Fail(Code::kAborted, "the transaction is over: it will be run again");
  if (careful_) TRY(RunText("SAVEPOINT statement"));
  auto run = [&]() -> Result<Answer> {
    TRY_ASSIGN(std::string name, Prepare(sql, values));
    return RunPrepared(name, values);
  };
  Result<Answer> answer = run();
  if (careful_ && fault_ == Fault::kNone) {
    int64_t changes = changes_;
    TRY(Script(answer ? "RELEASE statement" : "ROLLBACK TO statement"));
    changes_ = changes;
  }
  if (!answer) return tl::unexpected(std::move(answer).error());
  return Statement(std::make_unique<PostgresRows>(pq_, std::move(*answer)));
}

Status PostgresDatabase::Begin(Access access) {
  fault_ = Fault::kNone;
  failed_ = false;
  careful_ = std::exchange(careful_next_, false);
  if (access == Access::kRead) return Script("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
  // The lock goes when the transaction has become visible. A statement sees what was committed
  // before it began, so all that come after this one see every write before.
  Status begun = Script(fmt::format("BEGIN; SELECT pg_advisory_xact_lock({})", kWriterLock));
  if (!begun && fault_ == Fault::kNone) Rollback();
  return begun;
}

Status PostgresDatabase::Commit() {
  if (pq_.transactionStatus(raw_.get()) == PQTRANS_INERROR) {
    Rollback();
    return Fail(Code::kAborted, "the transaction had failed and was undone");
  }
  return Script("COMMIT");
}

void PostgresDatabase::Rollback() {
  if (fault_ == Fault::kLost || pq_.transactionStatus(raw_.get()) == PQTRANS_IDLE) return;
  Status undone = Script("ROLLBACK");
  if (!undone) LogWarn("a transaction could not be undone", {{"error", undone.error().message()}});
}

Status PostgresDatabase::AnnounceEvents() {
  return Run("SELECT pg_notify(?, ?)", std::string_view(kChannel), options_.tag);
}

Status PostgresDatabase::Listen() { return Script(fmt::format("LISTEN {}", kChannel)); }

Result<bool> PostgresDatabase::WaitForAnnouncement(int wake_fd, std::chrono::milliseconds most) {
  std::array<pollfd, 2> items{{{.fd = pq_.socket(raw_.get()), .events = POLLIN, .revents = 0},
                               {.fd = wake_fd, .events = POLLIN, .revents = 0}}};
  if (poll(items.data(), items.size(), static_cast<int>(most.count())) < 0 && errno != EINTR)
    return FailErrno("waiting for the database");
  if (!pq_.consumeInput(raw_.get()) || pq_.status(raw_.get()) != CONNECTION_OK)
    return tl::unexpected(Lost(OneLine(pq_.errorMessage(raw_.get()))));
  bool announced = false;
  while (PGnotify* notice = pq_.notifies(raw_.get())) {
    announced |= options_.tag != notice->extra;
    pq_.freemem(notice);
  }
  return announced;
}

}  // namespace caisson::store
