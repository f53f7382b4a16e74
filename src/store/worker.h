// The threads that touch the database, with one connection each. Calls queue up; all that wait when
// a thread comes round share one transaction, so a burst of writes costs one commit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/async.h"
#include "store/database.h"

namespace caisson::store {

class Worker {
 public:
  using OpenDatabase = std::function<Result<std::unique_ptr<Database>>()>;
  struct Options {
    size_t max_queue = 10'000;
    size_t max_batch = 256;  // more would hold back the first caller's answer for too long
    // Connections: those kept, and the most there are. Others are closed when they have been idle
    // for a while.
    size_t min_threads = 1;
    size_t max_threads = 1;
    // While the database cannot be reached calls wait; those that waited for so long fail.
    std::chrono::milliseconds patience{15'000};
    // Runs on the first thread, alone: once at the start, and again after what it returns.
    std::function<std::chrono::seconds(Database&)> chore;
  };

  // `first` is the first thread's connection; `open` makes the others and those after a loss.
  Worker(std::unique_ptr<Database> first, OpenDatabase open, asio::any_io_executor executor,
         Options options);
  // Finishes what is queued.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `job` on a thread and resumes on the executor when its transaction is committed. A job
  // that fails leaves no trace and does not disturb the others. It is run again if its transaction
  // could not be finished for reasons of the database, once only and alone if the database has
  // undone it; if nobody can tell whether it was finished, that is kUnavailable. Cannot be
  // canceled.
  template <class T>
  Task<Result<T>> Call(Database::Access access, std::function<Result<T>(Database&)> job) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    Status done = co_await Submit(access, [job = std::move(job), answer](Database& database) {
      answer->emplace(job(database));
      return **answer ? Status() : Status(tl::unexpect, (*answer)->error());
    });
    if (!done) co_return tl::unexpected(std::move(done).error());
    co_return std::move(**answer);
  }
  Task<Status> Submit(Database::Access access, std::function<Status(Database&)> job) {
    return Enqueue(access, std::move(job), false);
  }

  struct Numbers {
    size_t connections = 0;
    size_t busy = 0;     // of those
    size_t waiting = 0;  // calls
  };
  Numbers numbers();

  // Refuses new calls, finishes the queued ones and closes the database.
  Task<Status> Close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    Database::Access access;
    std::function<Status(Database&)> run;
    std::function<void(Status)> done;  // called on the thread; resumes the caller on the executor
    Clock::time_point give_up;
    bool last = false;   // after it none is taken
    bool alone = false;  // its transaction was undone once
  };
  using Batch = std::deque<Job>;

  Task<Status> Enqueue(Database::Access access, std::function<Status(Database&)> job, bool last);
  // False if the job was refused: `refused` then says why.
  bool Push(Job job, Error& refused);
  void Loop(size_t index, std::unique_ptr<Database> database);
  // Waits for jobs, the time `until`, or the end; the last two give an empty batch.
  Batch NextBatch(bool connected, Clock::time_point until);
  void SetDatabase(std::unique_ptr<Database>& database, std::unique_ptr<Database> now);
  // Runs the batch until each of its jobs is answered; `database` may be another one afterwards.
  void RunBatch(Batch& batch, std::unique_ptr<Database>& database);
  // kNone: all are answered. Else nothing was done, as `why` says, and the batch is to be run
  // again.
  static Database::Fault TryBatch(Batch& batch, Database& database, Error& why);
  // Fails if the transaction cannot be committed.
  static Status RunJobs(Batch& batch, Database& database, std::vector<Status>& results);
  // After a batch was undone: runs each of its jobs once more, alone. One that was alone already
  // fails.
  void RunEach(Batch& batch, std::unique_ptr<Database>& database, const Error& why);
  // Answers the jobs that have waited too long; all of them if there is no time left to wait.
  void GiveUp(Batch& batch, const Error& why, bool all);
  bool closing();
  void WakeAll();

  asio::any_io_executor executor_;
  Options options_;
  OpenDatabase open_;

  std::mutex mutex_;
  std::condition_variable wake_, wake_spare_, wake_retry_;
  Batch queue_;
  size_t idle_ = 0;  // threads that wait and have, or are to have, a connection
  size_t connections_ = 0;
  size_t busy_ = 0;
  bool closing_ = false;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace caisson::store
