// How the work on a task begins, is called off and ends.
#pragma once

#include "git/repository.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct StartRequest {
  std::string owner_id;
  std::string task_id;
  std::string agent_id;  // "" = the task's, else a free one of its squad
  std::string feedback;  // for the agent, besides the task's text
  // "" = a random one. An execution that has it already is the answer: the start was done before.
  std::string execution_id = {};
  Status allowed = {};  // the error if nothing new may begin (StartLimit)
  // Nobody who could do it is free: it waits for its turn instead of being refused (StartQueue).
  bool when_free = false;
};
struct Started {
  std::string task_id, execution_id;
  std::string run_id;    // "" of an outside agent
  bool already = false;  // it was under way; nothing new was begun
  bool queued = false;   // it waits for its turn; there is no execution yet
};

// Inside the caller's transaction; flow::Engine::Wake() afterwards. A task that is under way with
// the same agent is not started again. kFailedPrecondition: it waits for others, the agent is busy
// or paused, its squad is; kResourceExhausted: the budget is used up.
Result<Started> StartTask(store::Transaction& tx, Platform& platform, const StartRequest& request);
// The one that it names; without a name a scratch one, from which nothing is pushed.
Result<git::Repository> RepositoryOf(const Config& config, const store::TaskRow& task);
// As the setting commit_template makes it. kFailedPrecondition if that cannot be filled in.
Result<std::string> CommitMessageOf(const Config& config, const store::TaskRow& task,
                                    const store::AgentRow& agent);
// False if nothing was under way.
Result<bool> CancelWork(store::Transaction& tx, Platform& platform, const store::TaskRow& task,
                        const std::string& reason);

// How an execution ended.
struct Ending {
  std::string status;  // "succeeded", "failed", "canceled"
  std::string error;
};
// Writes the execution, frees its agent, and moves the task if it still stands in "in_progress":
// succeeded -> in_review, failed -> failed, canceled -> canceled.
Status EndExecution(store::Transaction& tx, Platform& platform, store::ExecutionRow& execution,
                    const Ending& ending);

}  // namespace caisson::work
