// How long a step waits before it is tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace caisson::flow {

// After failed attempt number `attempt` (from 1): min, 2 min, 4 min, ... up to max, or exactly what
// the other side asked for; and up to a twentieth of min more, by chance.
std::chrono::milliseconds RetryDelay(int64_t attempt,
                                     std::optional<std::chrono::milliseconds> retry_after,
                                     int64_t min_ms, int64_t max_ms);

}  // namespace caisson::flow
