// The host's disk is promised many times over: every sandbox may fill its own, and all of them lie
// on the host's. When that is full, the kernel tells whoever writes next that its disk is broken.
// So before that those whose disks grow fast are slowed down, and at the end the fastest stand
// still until there is room again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace caisson::engine {

class DiskGuard {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Pace { kFree, kSlow, kHeld };

  // With less free than `floor` bytes somebody stands still, with less than twice as much nobody is
  // fast; with `enough` one after the other goes on. A floor of 0 guards nothing.
  DiskGuard(int64_t floor, int64_t enough);

  // When to look again: as soon as it could matter.
  Clock::time_point next() const { return next_; }
  // Looks at how much is free; false: there is nothing to do.
  bool IsNear(int64_t free, Clock::time_point now);

  // When it is near: how much of the host's disk the disks of those that run take. Whoever is not
  // named is forgotten.
  void Update(int64_t free, const std::map<std::string, int64_t>& taken, Clock::time_point now);
  Pace PaceOf(const std::string& id) const;
  // How fast it may write then, in bytes per second; 0 = as fast as it can. Also of one that stands
  // still: what it has written already waits in memory, and would go on to the disk.
  static int64_t WritesAt(Pace pace);

 private:
  struct Known {
    int64_t taken = 0;
    double rate = 0;  // bytes per second, of late
    Pace pace = Pace::kFree;
  };
  void Measure(const std::map<std::string, int64_t>& taken, Clock::time_point now);
  void Slow();
  void Hold(int64_t free);
  void LetGo(Clock::time_point now);
  const int64_t floor_, slow_below_, fast_above_, enough_;
  Clock::time_point next_, measured_, released_;
  std::map<std::string, Known> known_;
};

}  // namespace caisson::engine
