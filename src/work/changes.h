// What a task has changed: in its sandbox while there is one, as it was kept afterwards.
#pragma once

#include <boost/json/array.hpp>

#include "git/git.h"
#include "store/review_rows.h"
#include "store/work_rows.h"
#include "work/checkouts.h"
#include "work/platform.h"

namespace caisson::work {

namespace json = boost::json;

struct TaskChanges {
  std::string source = "none";  // "sandbox", "stored", "none": nothing was changed yet
  std::string base_sha, head_sha, branch;
  json::array files;
  std::string patch;
  bool truncated = false;
};

// Where the work of a task stands.
struct GitContext {
  std::string repo_url, base_branch, current_branch;
  std::string last_commit_sha, last_commit_message;  // "" if it is not known
  std::optional<int64_t> uncommitted_changes;        // files; nothing while nobody can tell
};

class Changes {
 public:
  // All outlive it.
  Changes(Platform platform, Sandboxes& sandboxes, Checkouts& checkouts)
      : platform_(platform), sandboxes_(sandboxes), checkouts_(checkouts) {}

  // Against the base of the task's branch; with `since_commit` what its sandbox has that is not
  // committed. A sandbox that does not run is not woken.
  Task<Result<TaskChanges>> Of(std::string owner_id, std::string task_id, bool since_commit);
  // Of a sandbox that runs as it is now, else as it was written down.
  Task<Result<GitContext>> ContextOf(std::string owner_id, std::string task_id);

 private:
  // Where to look.
  struct Place {
    store::TaskRow task;
    std::optional<store::ExecutionRow> execution;  // the last one
    std::string base;                              // "" until it is cloned
    std::string base_branch;
    std::vector<std::string> leave_out;
  };
  Result<Place> Find(store::Transaction& tx, const std::string& owner_id,
                     const std::string& task_id) const;
  // Nothing if its sandbox cannot be looked into.
  Task<Result<std::optional<TaskChanges>>> Look(Place place, bool since_commit);

  Platform platform_;
  Sandboxes& sandboxes_;
  Checkouts& checkouts_;
};

// SECURITY: redacted, as everything that comes from a sandbox and is kept.
TaskChanges Describe(Platform& platform, git::ChangesResult found, std::string source);
// Keeps them in the place of what was kept before.
Status KeepChanges(store::Transaction& tx, const std::string& task_id,
                   const std::string& execution_id, const TaskChanges& changes);
// Files that an agent leaves behind and that are no work of its, as pathspecs.
std::vector<std::string> LitterOf(const std::string& adapter);

}  // namespace caisson::work
