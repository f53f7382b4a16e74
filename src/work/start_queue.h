// Starts the tasks that wait for an agent, each when one is free, in the order in which they came.
// That they wait is in their rows (TaskRow::queued_at), so it survives the server.
#pragma once

#include <set>
#include <string>

#include "work/platform.h"

namespace caisson::work {

class StartQueue {
 public:
  StartQueue(asio::any_io_executor executor, Platform platform);
  // Looks again and again until Stop().
  void Start();
  Task<void> Stop();
  struct Look {
    int64_t tried = 0;
    int64_t started = 0;
  };
  // Starts whatever can start now, of these owners; of everybody if there are none. One that cannot
  // start yet for another reason (it is blocked, the budget is used up) lets those behind it pass
  // and waits on. Of those that wait for the same agent the first is tried, the others only if that
  // one was not told to wait on.
  Task<Result<Look>> StartReady(std::set<std::string> owners = {});

 private:
  Task<void> Watch();
  Task<Status> StartOf(std::string owner_id, Look& look);

  Platform platform_;
  TaskGroup tasks_;
};

}  // namespace caisson::work
