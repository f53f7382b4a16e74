// What the methods of Git do once they have the lock. Arguments were checked before.
#pragma once

#include "git/invocation.h"

namespace caisson::git {

// ---- with the remote (remote_operations.cc) -----------------------------------------------
Task<Result<CloneResult>> RunClone(Invocation& in, std::string url, std::string branch,
                                   int64_t depth);
Task<Result<CloneResult>> RunRefresh(Invocation& in, std::string url, std::string branch,
                                     int64_t depth);
Task<Result<BranchResult>> RunBranch(Invocation& in, std::string name, std::string base);
Task<Result<std::string>> RunPush(Invocation& in, std::string branch);
Task<Result<PullResult>> RunPull(Invocation& in, bool rebase);

// ---- in the checkout (local_operations.cc) --------------------------------------------------
Task<Result<CloneResult>> RunInit(Invocation& in, Time at);
Task<Result<std::vector<std::string>>> RunStage(Invocation& in, std::vector<std::string> patterns);
struct CommitOrder {
  std::string message;
  std::string author_name, author_email;
  std::vector<std::string> trailers;
};
Task<Result<CommitResult>> RunCommit(Invocation& in, CommitOrder order);
Task<Result<StatusResult>> RunStatus(Invocation& in);
Task<Result<DiffResult>> RunDiff(Invocation& in, std::string base, std::vector<std::string> files);
Task<Result<ChangesResult>> RunChanges(Invocation& in, std::string base,
                                       std::vector<std::string> leave_out, int64_t max_bytes);
Task<Result<std::vector<CommitInfo>>> RunHistory(Invocation& in, int count, std::string range);
Task<Result<std::string>> RunTag(Invocation& in, std::string name, std::string message);

// ---- what several of them ask ---------------------------------------------------------------
// The commit that `revision` means, "" if there is none.
Task<Result<std::string>> FindCommit(Invocation& in, std::string revision);
// The name of the current branch, "" if HEAD is no branch.
Task<Result<std::string>> CurrentBranch(Invocation& in);

}  // namespace caisson::git
