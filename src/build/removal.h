// Builds that are deleted: their sandbox, snapshot, picture, files and log go. The row stays, empty
// and shown to nobody, because limits count it and its number is given only once.
#pragma once

#include "build/workbench.h"
#include "store/build_rows.h"
#include "work/platform.h"

namespace caisson::build {

class Removals {
 public:
  // All outlive it. `pictures`: the directory of the screenshots, "" = there is none.
  Removals(work::Platform platform, Workbench& workbench, std::string pictures)
      : platform_(platform), workbench_(workbench), pictures_(std::move(pictures)) {}

  // kNotFound also if it is somebody else's; kFailedPrecondition: it is not over, or a build that
  // is not over needs it. Once this says yes it is gone, even if the server dies before all of it
  // is.
  Task<Status> Delete(std::string owner_id, std::string id);
  // Ends what was begun, and deletes versions of projects that have more than build_keep_versions.
  Task<Status> Care();

 private:
  Task<Status> Remove(store::BuildRow row);
  Task<Status> DeleteOldVersions();
  Status Mark(store::Transaction& tx, store::BuildRow row) const;

  work::Platform platform_;
  Workbench& workbench_;
  std::string pictures_;
};

}  // namespace caisson::build
