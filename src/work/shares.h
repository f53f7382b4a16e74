// Links by which anybody may look at one task, and do nothing else.
#pragma once

#include "store/review_rows.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct NewShare {
  store::TaskShareRow row;
  std::string token;  // SECURITY: told once, to who made it
};
// What a link shows.
struct SharedTask {
  store::TaskRow task;
  std::vector<std::string> sandbox_ids;  // of its sandboxes, which are nobody else's business
};

class Shares {
 public:
  explicit Shares(Platform platform) : platform_(platform) {}

  // Good for `hours`, or share_default_hours. kInvalidArgument: longer than share_max_hours;
  // kResourceExhausted: the task has share_max_per_task of them.
  Task<Result<NewShare>> Create(std::string owner_id, std::string task_id,
                                std::optional<int64_t> hours);
  // Those that are good still, newest first.
  Task<Result<std::vector<store::TaskShareRow>>> List(std::string owner_id, std::string task_id);
  Task<Status> Revoke(std::string owner_id, std::string task_id, std::string id);
  // kNotFound in the same words for one that never was, is over or was revoked.
  Task<Result<SharedTask>> Open(std::string token);

 private:
  Platform platform_;
};

}  // namespace caisson::work
