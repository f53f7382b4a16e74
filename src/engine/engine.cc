#include "engine/engine.h"

namespace caisson::engine {

std::string_view ExitReasonName(ExitReason reason) {
  switch (reason) {
    case ExitReason::kEnvdExited:
      return "envd_exited";
    case ExitReason::kEnvdKilled:
      return "envd_killed";
    case ExitReason::kOutOfMemory:
      return "out_of_memory";
    case ExitReason::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view TierName(Tier tier) {
  switch (tier) {
    case Tier::kMemory:
      return "memory";
    case Tier::kFiles:
      return "files";
    case Tier::kFrozen:
      break;
  }
  return "frozen";
}

Result<Tier> ParseTier(std::string_view name) {
  for (Tier tier : {Tier::kMemory, Tier::kFiles, Tier::kFrozen})
    if (TierName(tier) == name) return tier;
  return Fail(Code::kInvalidArgument, "'{}' is no way to save a sandbox", name);
}

}  // namespace caisson::engine
