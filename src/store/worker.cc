#include "store/worker.h"

#include <exception>
#include <vector>

#include "base/log.h"

namespace caisson::store {
namespace {

// More would hold back the first caller's answer for too long.
constexpr size_t kMaxBatch = 256;

Status RunGuarded(Database& database, const std::function<Status(Database&)>& run) {
  try {
    return run(database);
  } catch (const std::exception& e) {
    return Fail(Code::kInternal, "database job: {}", e.what());
  }
}

// Runs one write inside the batch's transaction so that its failure undoes only itself.
Status RunInSavepoint(Database& database, const std::function<Status(Database&)>& run) {
  TRY(database.Run("SAVEPOINT job"));
  Status done = RunGuarded(database, run);
  if (!done) TRY(database.Run("ROLLBACK TO job"));
  TRY(database.Run("RELEASE job"));
  return done;
}

}  // namespace

Worker::Worker(Database database, Database second, asio::any_io_executor executor, Options options)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      database_(std::move(database)),
      checkpointer_(std::in_place, std::move(second)),
      next_chore_(std::chrono::steady_clock::now()),
      thread_([this] { Loop(); }) {}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Task<Status> Worker::Submit(Kind kind, std::function<Status(Database&)> job) {
  auto init = [this, kind](auto handler, std::function<Status(Database&)> run) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    // The guard keeps the loop running while the answer is still to come.
    auto done = [shared, work = asio::make_work_guard(executor_)](Status status) {
      asio::post(work.get_executor(), [shared, status = std::move(status)]() mutable {
        std::move (*shared)(std::move(status));
      });
    };
    Error refused(Code::kUnavailable, "");
    if (!Push({kind, std::move(run), done}, refused)) done(tl::unexpected(std::move(refused)));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Status)>(
      std::move(init), asio::use_awaitable, std::move(job));
}

bool Worker::Push(Job job, Error& refused) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) {
      refused = Error(Code::kUnavailable, "the database is closed");
      return false;
    }
    if (queue_.size() >= options_.max_queue) {
      refused = Error(Code::kResourceExhausted,
                      fmt::format("the database is busy: {} calls are waiting", queue_.size()));
      return false;
    }
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

Task<Status> Worker::Close() {
  Status flushed = co_await Submit(Kind::kRead, [this](Database&) -> Status {
    std::lock_guard lock(mutex_);
    closing_ = true;
    return {};
  });
  co_return flushed;
}

void Worker::Loop() {
  for (;;) {
    if (options_.chore && std::chrono::steady_clock::now() >= next_chore_) {
      options_.chore(*database_);
      next_chore_ = std::chrono::steady_clock::now() + options_.chore_interval;
    }
    std::deque<Job> batch = NextBatch();
    if (!batch.empty()) {
      RunBatch(batch);
      continue;
    }
    std::lock_guard lock(mutex_);
    if (closing_ && queue_.empty()) break;
  }
  checkpointer_.reset();
  database_.reset();  // the last connection: empties the log
}

std::deque<Worker::Job> Worker::NextBatch() {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, next_chore_, [this] { return closing_ || !queue_.empty(); });
  std::deque<Job> batch;
  while (!queue_.empty() && batch.size() < kMaxBatch) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void Worker::RunBatch(std::deque<Job>& batch) {
  Database& database = *database_;
  bool writes = std::any_of(batch.begin(), batch.end(),
                            [](const Job& job) { return job.kind == Kind::kWrite; });
  Status begun = writes ? database.Run("BEGIN IMMEDIATE") : Status();
  std::vector<Status> results;
  for (Job& job : batch) {
    if (!begun)
      results.push_back(begun);
    else if (job.kind == Kind::kWrite)
      results.push_back(RunInSavepoint(database, job.run));
    else
      results.push_back(RunGuarded(database, job.run));
  }
  if (writes && begun) {
    Status committed = database.Run("COMMIT");
    if (!committed) {
      LogError("a database transaction failed", {{"error", committed.error().message()}});
      Status undone = database.Run("ROLLBACK");
      if (!undone) LogError("rollback failed", {{"error", undone.error().message()}});
      for (Status& result : results)
        if (result) result = committed;
    }
  }
  for (size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(results[i]));
}

}  // namespace caisson::store
