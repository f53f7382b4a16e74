// Hears that other servers have appended events, on a thread and a connection of its own.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/fd.h"
#include "store/postgres_database.h"

namespace caisson::store {

class PostgresListener {
 public:
  using Open = std::function<Result<std::unique_ptr<PostgresDatabase>>()>;
  // `heard` is called on the thread, also after the connection was lost for a while.
  PostgresListener(Open open, std::function<void()> heard);
  ~PostgresListener();
  PostgresListener(const PostgresListener&) = delete;
  PostgresListener& operator=(const PostgresListener&) = delete;

 private:
  void Loop();
  // Until the connection is lost or the end.
  Status ListenOn(PostgresDatabase& database);

  Open open_;
  std::function<void()> heard_;
  UniqueFd wake_;  // an eventfd, readable at the end
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace caisson::store
