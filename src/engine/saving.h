// Saving a sandbox: freeze, sync, save, in this order on every path. Until the state is committed
// (saved.h) any failure thaws the sandbox, and it runs on as if nothing had happened.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/cgroup.h"
#include "engine/criu.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/manifest.h"
#include "engine/record.h"

namespace caisson::engine {

class Saving {
 public:
  // All must outlive it. `criu`: null where it does not work, because of `why_no_criu`.
  Saving(Host& host, const Criu* criu, std::string why_no_criu, std::string id, Deadline deadline);
  // Thaws it, unless Pause() succeeded.
  ~Saving();
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

  // See Driver. After a tier other than kFrozen what still lives of it is to be removed.
  Result<Saved> Pause(bool memory);
  Result<Saved> Snapshot(const std::string& snapshot_id, bool memory);

 private:
  // Reads the record, freezes, checks the room on the host's disk, syncs the sandbox's.
  Status Begin(bool memory);
  Status CheckRoom(int64_t bytes) const;
  // Whether the deleted files that are still open are not too many, for the host's disk neither.
  Status CheckDeletedFiles(const std::vector<pid_t>& processes) const;
  int64_t MostDeletedBytes() const;
  Status TooMuchDeleted() const;
  Status Freeze();
  // kUnimplemented: the memory cannot be saved, the message says why.
  Status Dump(int images) const;
  Manifest Describe(const std::string& saved_id, Tier tier) const;
  Result<Saved> StayFrozen(std::string why);

  Host& host_;
  const Criu* criu_;
  std::string why_no_criu_;
  std::string id_;
  Deadline deadline_;
  Record record_;
  Cgroup cgroup_;
  bool frozen_ = false;  // by us, to be thawed
};

}  // namespace caisson::engine
