// Whether the platform can do its work: what its credential for GitHub may, and whether runs come
// to an end. Each is tried at most once a minute.
#pragma once

#include "forge/github.h"
#include "work/kept_answer.h"
#include "work/platform.h"

namespace caisson::work {

class Checkup {
 public:
  // All of these outlive it.
  Checkup(asio::any_io_executor executor, Platform platform, forge::GitHub& github);
  // The workflow that Runs() tries; the engine has to know it before it starts.
  static flow::Definition Define();
  Task<void> Stop();

  // {"configured", "remaining", "repositories"}. An error if GitHub does not take
  // the credential, or if it may not push to one of the repositories of the latest tasks, or not
  // open pull requests there. SECURITY: which they are is not told: they belong to many users.
  Task<Result<boost::json::object>> Github() { return github_answer_.Get(); }
  // {"finished_ms", "running"}: a run of one step was started, taken and finished; or {"busy":
  // true} when every worker has something to do. An error if it was not finished in time.
  Task<Result<boost::json::object>> Runs() { return run_answer_.Get(); }

 private:
  Task<Result<boost::json::object>> AskGithub();
  Task<Result<boost::json::object>> TryRun();
  Task<Result<std::vector<forge::RepoName>>> LatestRepositories();

  Platform platform_;
  forge::GitHub& github_;
  KeptAnswer github_answer_, run_answer_;
};

}  // namespace caisson::work
