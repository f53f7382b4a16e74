// What this machine can do for sandboxes, found by trying, in plain words.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace caisson::engine {

struct Finding {
  enum class Level { kOk, kWarning, kProblem };
  Level level = Level::kOk;
  std::string topic;    // "cgroups", "disk limits", "network", ...
  std::string message;  // what works or not, and what follows
  std::string fix;      // what to do about it; "" if nothing
};

// Takes about a second. Needs root for most checks and says so when it is not.
std::vector<Finding> Examine(const Config& config);

}  // namespace caisson::engine
