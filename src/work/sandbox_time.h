// The time that a sandbox of the work platform has run: paused time does not count.
#pragma once

#include <string_view>

#include "base/time.h"
#include "store/sandbox_rows.h"

namespace caisson::work {

// Keeps the account when its status becomes `status`.
void CountPause(store::WorkSandboxRow& row, std::string_view status, Time now);
// Until `now`, or until its end.
Time::duration RunningTime(const store::WorkSandboxRow& row, Time now);

}  // namespace caisson::work
