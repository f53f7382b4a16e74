// What the steps of a task do outside of the database: sandboxes, git, the forge. Every function
// may be called again for the same job and does no harm then.
#pragma once

#include "forge/github.h"
#include "git/git.h"
#include "git/repository.h"
#include "sdk/envd_client.h"
#include "store/transaction.h"

namespace caisson::work {

// Whose work it is.
struct Job {
  std::string owner_id, task_id, agent_id, execution_id;
  git::Repository repository;  // a scratch one is not cloned but made
  Time begun;                  // of the execution
  std::string push_prefix;     // its branch; only this and names that begin with it may be pushed
  std::string template_name;   // "" = the setting
  bool untouched = false;      // no agent has been in its sandbox yet
  std::string sandbox_id;      // once it is known
};

struct CommitRequest {
  std::string message, author_name, author_email;
  std::vector<std::string> trailers;
  std::vector<std::string> leave_out;  // pathspecs
};
struct Used {
  std::string sandbox_id;  // "" if there was none
  int64_t running_ms = 0;  // how long it has run
  int64_t cpu_ms = 0;      // 0 if nobody can tell: the provider does not, or it has ended
};

class Workshop {
 public:
  virtual ~Workshop() = default;
  // The execution's sandbox: found again, or made. It runs, and its broker is open. Its id.
  virtual Task<Result<std::string>> Open(Job job) = 0;
  // `base` "" = the repository's default. In an untouched sandbox it is as if cloned now, whatever
  // the sandbox was made from.
  virtual Task<Result<git::CloneResult>> Clone(Job job, std::string base) = 0;
  virtual Task<Result<git::Git::BranchResult>> Branch(Job job, std::string name,
                                                      std::string base) = 0;
  // Starts it, or follows the one that was started before.
  virtual Task<Result<sdk::CommandResult>> RunAgent(Job job, sdk::Command command) = 0;
  virtual Task<Status> EndAgent(Job job) = 0;
  // Puts the sandbox away until Open(), if there is one.
  virtual Task<Status> Rest(Job job) = 0;
  // Until the checkout has a commit after `base_sha`, however long that takes.
  virtual Task<Status> AwaitCommit(Job job, std::string base_sha) = 0;
  // All changes, if there are any.
  virtual Task<Result<git::CommitResult>> Commit(Job job, CommitRequest request) = 0;
  // Since `base_sha`, newest first.
  virtual Task<Result<std::vector<git::CommitInfo>>> Commits(Job job, std::string base_sha) = 0;
  // All of them since `base`, committed or not; `leave_out`: pathspecs.
  virtual Task<Result<git::ChangesResult>> Changes(Job job, std::string base,
                                                   std::vector<std::string> leave_out) = 0;
  // The sha that is there now. `rebase`: if somebody else has committed to the branch meanwhile,
  // what is here goes on top of that; only for a checkout that nobody works in. kAborted: that
  // cannot be done, because of conflicts, which are named, or because the others do not stop.
  virtual Task<Result<std::string>> Push(Job job, std::string branch, bool rebase) = 0;
  virtual Task<Result<forge::GitHub::Made>> OpenPullRequest(Job job,
                                                            forge::NewPullRequest request) = 0;
  // Gives an open one its last title and body, and marks it as ready unless it shall be a draft.
  virtual Task<Result<forge::PullRequest>> CompletePullRequest(Job job, int64_t number,
                                                               forge::NewPullRequest request) = 0;
  // How long the job should stay in its sandbox; zero or less: it is time to leave.
  virtual Task<Result<std::chrono::milliseconds>> TimeLeft(Job job) = 0;
  // Ends the agent and goes on in a fresh sandbox with the same files, whose broker is open. Its
  // id. `also` is called in the transaction that makes it the execution's.
  using Renewed = std::function<Status(store::Transaction&, const std::string& sandbox_id)>;
  virtual Task<Result<std::string>> Renew(Job job, Renewed also) = 0;
  // What the execution's newest sandbox has used so far.
  virtual Task<Result<Used>> Measure(Job job) = 0;
  // Destroys the sandbox, or pauses it.
  virtual Task<Status> Release(Job job, bool keep) = 0;
  // Where the checkout is.
  virtual std::string PathOf(const Job& job) const = 0;
};

}  // namespace caisson::work
