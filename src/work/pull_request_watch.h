// Asks GitHub what became of pull requests: webhooks get lost, and not every server receives any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "forge/github.h"
#include "store/work_rows.h"
#include "work/platform.h"
#include "work/pull_requests.h"

namespace caisson::work {

// True while the rest of GitHub's budget has to do for the work itself.
bool IsScarce(const forge::Budget& budget, Time now);

// What GitHub calls the step from the state that a task knows to what is now; "" if there is none.
// An approval is no state of a pull request at GitHub: an open one may still be "approved".
std::string StepTo(const forge::PullRequest& now, std::string_view known);

class PullRequestWatch {
 public:
  // All of these outlive it.
  PullRequestWatch(asio::any_io_executor executor, Platform platform, forge::GitHub& github,
                   PullRequests& pull_requests);

  // Checks at once and every pull_request_check_s until Stop(); with 0 never.
  void Start();
  Task<void> Stop();

  // Does for tasks in review what a webhook would have done: merged, closed, reopened, a draft or
  // not. A later webhook changes nothing twice. Reviews are known by webhooks only. At most 50
  // tasks at a time, the next ones the next time; none while little of GitHub's budget is left.
  Task<Status> Check();
  // The same for one task, wherever it stands. kNotFound: it has no pull request;
  // kFailedPrecondition: it is not of the forge in the settings.
  Task<Result<store::TaskRow>> Refresh(std::string owner_id, std::string task_id);

 private:
  Task<void> Watch();
  Task<Result<std::vector<store::TaskRow>>> NextTasks();
  Task<Status> CheckRepository(forge::RepoName repo, std::vector<store::TaskRow> tasks);
  Task<Status> Tell(forge::RepoName repo, store::TaskRow task, forge::PullRequest now);

  Platform platform_;
  forge::GitHub& github_;
  PullRequests& pull_requests_;
  std::string last_id_;  // of the last task that was checked
  TaskGroup tasks_;
};

}  // namespace caisson::work
