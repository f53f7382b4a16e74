// The runner "command": an agent of the owner works in the build's sandbox, as agents do on tasks.
#pragma once

#include <functional>

#include "build/runner.h"
#include "build/workbench.h"
#include "work/platform.h"

namespace caisson::build {

struct ModelAccess {
  std::vector<std::string> routes;  // names of those that the broker has
  // The sandbox reaches them from now on; and not any more.
  std::function<Task<Status>(std::string owner_id, std::string sandbox_id)> grant;
  std::function<void(const std::string& sandbox_id)> revoke;
};

// All outlive it.
std::unique_ptr<Runner> MakeCommandRunner(work::Platform platform, Workbench& workbench,
                                          ModelAccess models);

}  // namespace caisson::build
