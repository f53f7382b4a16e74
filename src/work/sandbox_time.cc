#include "work/sandbox_time.h"

namespace caisson::work {

void CountPause(store::WorkSandboxRow& row, std::string_view status, Time now) {
  if (status == "paused") {
    if (!row.paused_at) row.paused_at = now;
    return;
  }
  // On the way from or to a pause it is counted with what it was before.
  if (!row.paused_at || status == "pausing" || status == "resuming") return;
  row.paused_ms +=
      std::chrono::duration_cast<std::chrono::milliseconds>(now - *row.paused_at).count();
  row.paused_at.reset();
}

Time::duration RunningTime(const store::WorkSandboxRow& row, Time now) {
  Time end = row.destroyed_at.value_or(row.paused_at.value_or(now));
  return end - row.created_at - std::chrono::milliseconds(row.paused_ms);
}

}  // namespace caisson::work
