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

Status Driver::Pause(const std::string&) {
  return Fail(Code::kUnimplemented, "the {} driver cannot pause a sandbox", name());
}
Status Driver::Resume(const std::string&) {
  return Fail(Code::kUnimplemented, "the {} driver cannot resume a sandbox", name());
}
Result<std::string> Driver::Snapshot(const std::string&) {
  return Fail(Code::kUnimplemented, "the {} driver cannot take snapshots", name());
}
Result<Sandbox> Driver::Fork(const std::string&, const std::string&) {
  return Fail(Code::kUnimplemented, "the {} driver cannot fork a sandbox", name());
}

}  // namespace caisson::engine
