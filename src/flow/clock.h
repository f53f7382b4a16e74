// The time that leases, retries and waits are counted in. It never goes back: setting the machine's
// clock back stalls nothing.
#pragma once

#include <atomic>

#include "base/time.h"

namespace caisson::flow {

// Safe on every thread.
class Clock {
 public:
  Clock();
  Time Now() const;
  // Goes forward to `seen` if it is behind. Before it follows the machine's clock, the caller must
  // have written leases that reach beyond the new time.
  void Follow(Time seen);

 private:
  std::atomic<int64_t> offset_;  // of our time to the kernel's clock since boot, in nanoseconds
};

}  // namespace caisson::flow
