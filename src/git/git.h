// Git inside a sandbox: the platform's own operations, by argument vectors only. No credential is
// ever inside; network operations go to the broker that listens in the sandbox's loopback.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/time.h"
#include "git/command_runner.h"
#include "git/failure.h"
#include "git/lock.h"
#include "git/porcelain.h"
#include "git/repository.h"
#include "sdk/envd_client.h"

namespace caisson::git {

// One operation as it is recorded; callers turn it into rows and events.
struct Operation {
  std::string name;               // "clone", "commit", ...
  std::vector<std::string> argv;  // of its main command, as it ran
  int exit_code = 0;
  int attempts = 1;
  Failure failure = Failure::kNone;
  std::string output;  // bounded
  std::chrono::milliseconds duration{0};
};
struct Observer {
  std::function<void(const std::string& name)> started;  // its turn has come
  std::function<void(const Progress&)> progress;
  std::function<void(const Operation&)> finished;
};

struct CloneResult {
  std::string path;
  std::string head_sha;  // "" in a repository without commits
  std::string branch;
  bool cloned = true;     // false: it was there and was brought up to date
  bool uses_lfs = false;  // then its large files are only pointers: LFS is not supported
};
// From `base` ("" = the current branch), up to date with the remote.
struct BranchResult {
  std::string branch;
  std::string base_sha;
  bool created = true;  // false: it was there, and is checked out now
};
struct CommitResult {
  std::string sha;
  bool committed = true;  // false: there was nothing to commit
  std::vector<std::string> files;
};
struct DiffResult {
  std::string text;  // unified; cut at a limit
  bool truncated = false;
  std::vector<DiffFile> files;
};
// What is in the working tree, with files that git does not follow yet, and was not at the base.
struct ChangesResult {
  std::string base_sha, head_sha, branch;
  std::vector<DiffFile> files;
  std::string patch;       // unified
  bool truncated = false;  // of the patch or of the files there is more
};
struct PullResult {
  std::string branch;
  std::string head_sha;
  bool moved = false;                  // the head is another one than before
  std::vector<std::string> conflicts;  // empty: it went well; else nothing was changed
};

class Invocation;

// One repository in one sandbox. Errors have a code that fits (kUnauthenticated, kUnavailable,
// kAborted for conflicts, kNotFound, kFailedPrecondition for rejected pushes) and a message with
// git's own words. What the network let down is repeated, nothing else is.
class Git {
 public:
  // `path`: where the checkout is or shall be. `lock`: Locks::For(sandbox, path), without one only
  // operations of this object wait for each other. All outlive it.
  Git(sdk::EnvdClient& envd, const Config& config, std::string path, Observer observer = {},
      std::shared_ptr<Lock> lock = nullptr);
  Git(CommandRunner& runner, const Config& config, std::string path, Observer observer = {},
      std::shared_ptr<Lock> lock = nullptr);

  // From the broker's URL. An existing checkout is fetched and fast-forwarded. `depth` 0: all.
  Task<Result<CloneResult>> Clone(std::string url, std::string branch, int64_t depth);
  // What Clone() leaves in an empty place, also where a checkout is: that is fetched, and commits
  // and changes of its own are thrown away. What cannot be used is replaced by a clone.
  Task<Result<CloneResult>> Refresh(std::string url, std::string branch, int64_t depth);
  // A repository of its own with one empty commit on "main", made at `at`: the same inputs give the
  // same commit. One that is there is left as it is.
  Task<Result<CloneResult>> Init(Time at);
  using BranchResult = git::BranchResult;
  Task<Result<BranchResult>> Branch(std::string name, std::string base);
  // Patterns as in .gitignore's language; none = all changes. The files that are staged now.
  Task<Result<std::vector<std::string>>> Stage(std::vector<std::string> patterns);
  // Commits what is staged. `trailers` are "Key: value" lines; a commit at HEAD that has the same
  // trailers already is the answer, so that a repeated step makes one commit. The message is
  // checked before the sandbox is touched.
  Task<Result<CommitResult>> Commit(std::string message, std::string author_name,
                                    std::string author_email, std::vector<std::string> trailers);
  // "" = the current branch. The sha that is there now.
  Task<Result<std::string>> Push(std::string branch);
  Task<Result<StatusResult>> Status();
  // Of the tracked files of the working tree against `base` ("" = HEAD); `files` empty = all.
  Task<Result<DiffResult>> Diff(std::string base, std::vector<std::string> files);
  // Against where this branch left `base` ("" = against HEAD). Nothing is changed, not even what is
  // staged. `leave_out`: as of Stage(). Patch: at most `max_bytes`.
  Task<Result<ChangesResult>> Changes(std::string base, std::vector<std::string> leave_out,
                                      int64_t max_bytes);
  Task<Result<std::vector<CommitInfo>>> History(int count, std::string range = "");
  // Conflicts are listed and undone. Needs a tree without changes.
  Task<Result<PullResult>> Pull(bool rebase);
  // At HEAD; without a message a lightweight one. The sha of the commit it names.
  Task<Result<std::string>> Tag(std::string name, std::string message);

 private:
  // Waits for the lock, does the work, reports it.
  template <class T>
  Task<Result<T>> Perform(Invocation& invocation, Task<Result<T>> work);

  std::unique_ptr<CommandRunner> own_runner_;
  CommandRunner& runner_;
  const Config& config_;
  std::string path_;
  Observer observer_;
  std::shared_ptr<Lock> lock_;
};

}  // namespace caisson::git
