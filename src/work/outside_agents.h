// Agents that are programs elsewhere: they ask for work through the API, tell that they are alive,
// and report what became of it.
#pragma once

#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct Claimed {
  store::TaskRow task;
  store::ExecutionRow execution;
};
struct Report {
  std::string execution_id;
  std::string status;  // "succeeded", "failed"
  std::string summary, branch, pull_request_url, model;
  int64_t tokens_in = 0, tokens_out = 0;
  double dollars = 0;
};

class OutsideAgents {
 public:
  OutsideAgents(asio::any_io_executor executor, Platform platform);
  // Gives tasks back whose agent is silent, again and again until Stop().
  void Start();
  Task<void> Stop();

  // The most urgent task that is assigned to this agent; waits up to `patience` for one. The task
  // it has already, if it has one.
  Task<Result<std::optional<Claimed>>> Claim(std::string owner_id, std::string agent_id,
                                             std::chrono::milliseconds patience);
  Task<Status> Heartbeat(std::string owner_id, std::string agent_id);
  // kFailedPrecondition: this execution is over, the task may be with somebody else.
  Task<Result<store::ExecutionRow>> Finish(std::string owner_id, std::string agent_id,
                                           Report report);
  // Returns how many tasks were given back.
  Task<Result<int64_t>> GiveBackSilent(Time now);

 private:
  Task<void> Watch();

  Platform platform_;
  TaskGroup tasks_;
};

}  // namespace caisson::work
