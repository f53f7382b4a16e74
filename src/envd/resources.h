// What the sandbox has and uses: GET /metrics.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace caisson::envd {

// The limits that the engine set, from CAISSON_MEMORY_BYTES and CAISSON_CPUS; without them, what
// the machine has.
struct ResourceLimits {
  uint64_t memory_bytes = 0;
  double cpus = 1;

  static ResourceLimits FromEnvironment();
};

class Resources {
 public:
  explicit Resources(ResourceLimits limits) : limits_(limits) {}

  // The answer of GET /metrics. cpu_used_pct is of all CPUs together since the call before.
  Result<boost::json::object> Metrics();

 private:
  ResourceLimits limits_;
  std::chrono::steady_clock::time_point sampled_{};
  uint64_t sampled_ticks_ = 0;
};

}  // namespace caisson::envd
