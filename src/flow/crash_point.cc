#include "flow/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"

namespace caisson::flow {

CrashPoint::CrashPoint() {
  const char* value = std::getenv("CAISSON_FLOW_CRASH_AT");
  if (!value) return;
  std::string_view text = value;
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return;
  step_ = text.substr(0, colon);
  point_ = text.substr(colon + 1);
  LogWarn("this server kills itself at a step, for a test", {{"step", step_}, {"point", point_}});
}

void CrashPoint::Reached(std::string_view step, std::string_view point) const {
  if (step_.empty() || step != step_ || point != point_) return;
  kill(getpid(), SIGKILL);
}

}  // namespace caisson::flow
