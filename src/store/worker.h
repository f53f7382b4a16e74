// The one thread that touches the database. Calls queue up; all that wait when it comes round share
// one transaction, so a burst of writes costs one commit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/async.h"
#include "store/checkpointer.h"
#include "store/database.h"

namespace caisson::store {

class Worker {
 public:
  struct Options {
    size_t max_queue = 10'000;
    // Runs on the thread, alone: once at the start and then this often.
    std::function<void(Database&)> chore;
    std::chrono::seconds chore_interval{86'400};
  };

  // `second` is another connection to the same file, for the checkpointer.
  Worker(Database database, Database second, asio::any_io_executor executor, Options options);
  // Finishes what is queued.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  enum class Kind { kRead, kWrite };
  // Runs `job` on the thread and resumes on the executor when its transaction is committed. A write
  // that fails leaves no trace and does not disturb the others. Cannot be canceled.
  template <class T>
  Task<Result<T>> Call(Kind kind, std::function<Result<T>(Database&)> job) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    Status done = co_await Submit(kind, [job = std::move(job), answer](Database& database) {
      answer->emplace(job(database));
      return **answer ? Status() : Status(tl::unexpect, (*answer)->error());
    });
    if (!done) co_return tl::unexpected(std::move(done).error());
    co_return std::move(**answer);
  }
  Task<Status> Submit(Kind kind, std::function<Status(Database&)> job);

  // Refuses new calls, finishes the queued ones and closes the database.
  Task<Status> Close();

 private:
  struct Job {
    Kind kind;
    std::function<Status(Database&)> run;
    std::function<void(Status)> done;  // called on the thread; resumes the caller on the executor
  };

  // False if the job was refused: `refused` then says why.
  bool Push(Job job, Error& refused);
  void Loop();
  // Waits for jobs, the time of the chore, or the end; the last two give an empty batch.
  std::deque<Job> NextBatch();
  void RunBatch(std::deque<Job>& batch);

  asio::any_io_executor executor_;
  Options options_;
  std::optional<Database> database_;  // of the thread; empty once closed
  std::optional<Checkpointer> checkpointer_;
  std::chrono::steady_clock::time_point next_chore_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  bool closing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace caisson::store
