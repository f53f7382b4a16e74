#include "flow/clock.h"

#include <time.h>

namespace caisson::flow {
namespace {

// Unlike steady_clock it counts the time the machine was suspended.
int64_t SinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Clock::Clock() : offset_(UnixNanos(caisson::Now()) - SinceBoot()) {}

Time Clock::Now() const { return FromUnixNanos(SinceBoot() + offset_.load()); }

void Clock::Follow(Time seen) {
  int64_t wanted = UnixNanos(seen) - SinceBoot();
  int64_t offset = offset_.load();
  while (offset < wanted && !offset_.compare_exchange_weak(offset, wanted)) {
  }
}

}  // namespace caisson::flow
