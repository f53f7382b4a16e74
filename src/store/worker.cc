#include "store/worker.h"

#include <algorithm>
#include <exception>

#include "base/log.h"

namespace caisson::store {
namespace {

using Access = Database::Access;
using Fault = Database::Fault;

// Connections beyond those that are kept are closed after this.
constexpr std::chrono::seconds kIdle{60};
// Between two tries to reach the database, or after a conflict.
constexpr std::chrono::milliseconds kRetryPause{100};

Status RunGuarded(Database& database, const std::function<Status(Database&)>& run) {
  try {
    Status done = run(database);
    // A job may go on after an error that it expected, but not after one that cost the transaction.
    return done && database.fault() == Fault::kUndone ? database.Commit() : done;
  } catch (const std::exception& e) {
    return Fail(Code::kInternal, "database job: {}", e.what());
  }
}

// Runs one write inside the batch's transaction so that its failure undoes only itself. Fails if
// that could not be made sure.
Status RunInSavepoint(Database& database, const std::function<Status(Database&)>& run,
                      Status& result) {
  TRY(database.Script("SAVEPOINT job"));
  result = RunGuarded(database, run);
  if (database.fault() != Fault::kNone) return {};
  return database.Script(result ? "RELEASE job" : "ROLLBACK TO job; RELEASE job");
}

// Undoes the transaction and says why it has to be run again. A connection may turn out to be lost
// only now.
Fault Undo(Database& database) {
  database.Rollback();
  Fault fault = database.fault();
  return fault == Fault::kNone ? Fault::kUndone : fault;
}

Error TooLate(const Error& why) {
  return Error(Code::kUnavailable,
               fmt::format("the database could not do this in time: {}", why.message()));
}

tl::unexpected<Error> OutcomeUnknown() {
  return Fail(Code::kUnavailable,
              "the database went away while it finished this: whether it was done is not known");
}

}  // namespace

Worker::Worker(std::unique_ptr<Database> first, OpenDatabase open, asio::any_io_executor executor,
               Options options)
    : executor_(std::move(executor)), options_(std::move(options)), open_(std::move(open)) {
  for (size_t i = 0; i < options_.max_threads; ++i)
    threads_.emplace_back(
        [this, i](std::unique_ptr<Database> database) { Loop(i, std::move(database)); },
        i == 0 ? std::move(first) : nullptr);
}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  WakeAll();
  for (std::thread& thread : threads_) thread.join();
}

Task<Status> Worker::Enqueue(Access access, std::function<Status(Database&)> job, bool last) {
  auto init = [this, access, last](auto handler, std::function<Status(Database&)> run) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    // The guard keeps the loop running while the answer is still to come.
    auto done = [shared, work = asio::make_work_guard(executor_)](Status status) {
      asio::post(work.get_executor(), [shared, status = std::move(status)]() mutable {
        std::move (*shared)(std::move(status));
      });
    };
    Error refused(Code::kUnavailable, "");
    if (!Push({access, std::move(run), done, Clock::now() + options_.patience, last}, refused))
      done(tl::unexpected(std::move(refused)));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Status)>(
      std::move(init), asio::use_awaitable, std::move(job));
}

bool Worker::Push(Job job, Error& refused) {
  bool spare = false;
  {
    std::lock_guard lock(mutex_);
    if (closing_) {
      refused = Error(Code::kUnavailable, "the database is closed");
      return false;
    }
    closing_ = job.last;
    if (queue_.size() >= options_.max_queue && !job.last) {
      refused = Error(Code::kResourceExhausted,
                      fmt::format("the database is busy: {} calls are waiting", queue_.size()));
      return false;
    }
    queue_.push_back(std::move(job));
    spare = queue_.size() > idle_;
  }
  wake_.notify_one();
  if (spare) wake_spare_.notify_one();
  return true;
}

Task<Status> Worker::Close() {
  Status flushed = co_await Enqueue(Access::kRead, [](Database&) { return Status(); }, true);
  WakeAll();
  co_return flushed;
}

void Worker::WakeAll() {
  wake_.notify_all();
  wake_spare_.notify_all();
  wake_retry_.notify_all();
}

bool Worker::closing() {
  std::lock_guard lock(mutex_);
  return closing_;
}

Worker::Numbers Worker::numbers() {
  std::lock_guard lock(mutex_);
  return {connections_, busy_, queue_.size()};
}

void Worker::SetDatabase(std::unique_ptr<Database>& database, std::unique_ptr<Database> now) {
  {
    std::lock_guard lock(mutex_);
    connections_ += (now ? 1 : 0);
    connections_ -= (database ? 1 : 0);
  }
  database = std::move(now);
}

void Worker::Loop(size_t index, std::unique_ptr<Database> first) {
  std::unique_ptr<Database> database;
  SetDatabase(database, std::move(first));
  bool kept = index < options_.min_threads;
  auto next_chore = Clock::now();
  for (;;) {
    bool chores = index == 0 && options_.chore && database;
    if (chores && Clock::now() >= next_chore) next_chore = Clock::now() + options_.chore(*database);
    Batch batch = NextBatch(kept || database, chores ? next_chore : Clock::now() + kIdle);
    if (!batch.empty()) {
      RunBatch(batch, database);
      std::lock_guard lock(mutex_);
      --busy_;
      continue;
    }
    {
      std::lock_guard lock(mutex_);
      if (closing_ && queue_.empty()) break;
    }
    if (!kept) SetDatabase(database, nullptr);
  }
  SetDatabase(database, nullptr);
}

Worker::Batch Worker::NextBatch(bool connected, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (connected) ++idle_;
  // A thread without a connection works only on what the others leave.
  (connected ? wake_ : wake_spare_).wait_until(lock, until, [&] {
    return closing_ || (!queue_.empty() && (connected || queue_.size() > idle_));
  });
  if (connected) --idle_;
  Batch batch;
  while (!queue_.empty() && batch.size() < options_.max_batch) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (!batch.empty()) ++busy_;
  bool spare = queue_.size() > idle_;
  lock.unlock();
  if (spare) wake_spare_.notify_one();
  return batch;
}

void Worker::GiveUp(Batch& batch, const Error& why, bool all) {
  std::erase_if(batch, [&](Job& job) {
    if (!all && Clock::now() < job.give_up) return false;
    job.done(tl::unexpected(TooLate(why)));
    return true;
  });
}

void Worker::RunBatch(Batch& batch, std::unique_ptr<Database>& database) {
  while (!batch.empty()) {
    Error why(Code::kUnavailable, "");
    if (!database) {
      auto opened = open_();
      if (opened)
        SetDatabase(database, std::move(*opened));
      else
        why = opened.error();
    }
    if (database) {
      Fault fault = TryBatch(batch, *database, why);
      if (fault == Fault::kNone) return;
      if (fault == Fault::kUndone) return RunEach(batch, database, why);
      if (fault == Fault::kLost) {
        LogWarn("the database connection was lost; it is made anew", {{"error", why.message()}});
        SetDatabase(database, nullptr);
      }
    }
    GiveUp(batch, why, !database && closing());
    std::unique_lock lock(mutex_);
    if (!batch.empty()) wake_retry_.wait_for(lock, kRetryPause, [this] { return closing_; });
  }
}

// So that one job that is too much for the database does not fail the others.
void Worker::RunEach(Batch& batch, std::unique_ptr<Database>& database, const Error& why) {
  bool again = !batch.front().alone;
  LogError("a database transaction failed", {{"error", why.message()}, {"run_again", again}});
  if (!again) return batch.front().done(tl::unexpected(why));
  for (Job& job : batch) {
    job.alone = true;
    Batch one;
    one.push_back(std::move(job));
    RunBatch(one, database);
  }
}

Status Worker::RunJobs(Batch& batch, Database& database, std::vector<Status>& results) {
  for (Job& job : batch) {
    Status& result = results.emplace_back();
    if (job.access == Access::kWrite && batch.size() > 1)
      TRY(RunInSavepoint(database, job.run, result));
    else
      result = RunGuarded(database, job.run);
    if (database.fault() == Fault::kNone) continue;
    return result ? Fail(Code::kUnavailable, "the connection ended") : result;
  }
  return {};
}

Fault Worker::TryBatch(Batch& batch, Database& database, Error& why) {
  bool writes = std::any_of(batch.begin(), batch.end(),
                            [](const Job& job) { return job.access == Access::kWrite; });
  std::vector<Status> results;
  Status begun = database.Begin(writes ? Access::kWrite : Access::kRead);
  if (!begun && database.fault() == Fault::kNone) {
    for (Job& job : batch) job.done(begun);
    return Fault::kNone;
  }
  if (Status run = begun ? RunJobs(batch, database, results) : begun; !run) {
    why = run.error();
    return Undo(database);
  }
  if (batch.size() == 1 && !results[0]) {
    database.Rollback();
  } else if (Status committed = database.Commit(); !committed) {
    Fault fault = Undo(database);
    why = committed.error();
    if (writes && fault != Fault::kLost) return fault;
    if (writes) {
      LogError("a database transaction may have failed", {{"error", why.message()}});
      for (Status& result : results)
        if (result) result = OutcomeUnknown();
    }
  }
  for (size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(results[i]));
  return Fault::kNone;
}

}  // namespace caisson::store
