// The workshop of this server: sandboxes of the platform, git in them behind the broker, GitHub.
#pragma once

#include <functional>

#include "work/agent_loop.h"
#include "work/authors.h"
#include "work/checkouts.h"
#include "work/kept_checkouts.h"
#include "work/workshop.h"

namespace caisson::work {

class LocalWorkshop final : public Workshop {
 public:
  // All outlive it.
  LocalWorkshop(Platform platform, Sandboxes& sandboxes, Checkouts& checkouts, KeptCheckouts& kept,
                Authors& authors, AgentLoop& loop);

  Task<Result<std::string>> Open(Job job) override;
  Task<Result<git::CloneResult>> Clone(Job job, std::string base) override;
  Task<Result<git::Git::BranchResult>> Branch(Job job, std::string name, std::string base) override;
  Task<Result<sdk::CommandResult>> RunAgent(Job job, sdk::Command command) override;
  Task<Status> EndAgent(Job job) override;
  Task<Status> Rest(Job job) override;
  Task<Status> AwaitCommit(Job job, std::string base_sha) override;
  Task<Result<git::CommitResult>> Commit(Job job, CommitRequest request) override;
  Task<Result<std::vector<git::CommitInfo>>> Commits(Job job, std::string base_sha) override;
  Task<Result<git::ChangesResult>> Changes(Job job, std::string base,
                                           std::vector<std::string> leave_out) override;
  Task<Result<std::string>> Push(Job job, std::string branch, bool rebase) override;
  Task<Result<forge::GitHub::Made>> OpenPullRequest(Job job,
                                                    forge::NewPullRequest request) override;
  Task<Result<forge::PullRequest>> CompletePullRequest(Job job, int64_t number,
                                                       forge::NewPullRequest request) override;
  Task<Result<std::chrono::milliseconds>> TimeLeft(Job job) override;
  Task<Result<std::string>> Renew(Job job, Renewed also) override;
  Task<Result<Used>> Measure(Job job) override;
  Task<Status> Release(Job job, bool keep) override;
  std::string PathOf(const Job& job) const override;

 private:
  // The job's own, or a new one, from a kept checkout if there is one.
  Task<Result<SandboxRow>> MakeSandbox(Job job);
  // The broker listens in the sandbox and lets pass what this job may do.
  Task<Status> OpenBroker(Job job);
  template <class T>
  Task<Result<T>> With(Job job, std::function<Task<Result<T>>(git::Git&)> work);

  Platform platform_;
  Sandboxes& sandboxes_;
  Checkouts& checkouts_;
  KeptCheckouts& kept_;
  Authors& authors_;
  AgentLoop& loop_;
};

}  // namespace caisson::work
