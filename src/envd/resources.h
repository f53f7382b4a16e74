// What the sandbox has and uses: GET /metrics, and the /proc/meminfo that programs inside see.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace caisson::envd {

// Where the engine puts the file that is mounted over /proc/meminfo.
inline constexpr char kMeminfoFile[] = "/.caisson/meminfo";

// The limits that the engine set, from CAISSON_MEMORY_BYTES and CAISSON_CPUS; without them, what
// the machine has.
struct ResourceLimits {
  uint64_t memory_bytes = 0;
  double cpus = 1;
  bool memory_limited = false;

  static ResourceLimits FromEnvironment();
};

class Resources {
 public:
  explicit Resources(ResourceLimits limits) : limits_(limits) {}

  // The answer of GET /metrics. cpu_used_pct is of all CPUs together since the call before.
  Result<boost::json::object> Metrics();
  // Writes the sandbox's own numbers into `path`, in place: it is a mount, its inode must stay.
  // Does nothing if the file is missing or memory is not limited.
  void WriteMeminfo(const char* path) const;

 private:
  ResourceLimits limits_;
  std::chrono::steady_clock::time_point sampled_{};
  uint64_t sampled_ticks_ = 0;
};

// The text of a /proc/meminfo with this much memory.
std::string MeminfoText(uint64_t total_bytes, uint64_t used_bytes);

}  // namespace caisson::envd
