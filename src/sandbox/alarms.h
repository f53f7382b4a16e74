// What a sandbox ran out of, told once per change: memory, processes, disk.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "store/store.h"

namespace caisson::sandbox {

// Kept with each running sandbox and shown every sample of it.
class Alarms {
 public:
  using Clock = std::chrono::steady_clock;

  // `fresh`: its counters begin at zero. Those of one that was adopted may have been told before,
  // so the first sample only says where they stand.
  explicit Alarms(bool fresh = true) : known_(fresh) {}

  // What has happened since the last look. A sandbox that keeps running into the same wall is told
  // of once a minute, with the number of times.
  std::vector<store::SandboxEvent> Look(const std::string& id, const engine::Usage& usage,
                                        Clock::time_point now);

 private:
  struct Counter {
    int64_t told = 0;
    std::optional<Clock::time_point> at;

    // How many are new and shall be told now.
    int64_t News(int64_t count, Clock::time_point now);
  };
  bool known_;
  Counter oom_kills_;
  Counter pids_refused_;
  bool disk_full_ = false;
};

}  // namespace caisson::sandbox
