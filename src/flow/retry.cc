#include "flow/retry.h"

#include <algorithm>

#include "base/id.h"

namespace caisson::flow {

std::chrono::milliseconds RetryDelay(int64_t attempt,
                                     std::optional<std::chrono::milliseconds> retry_after,
                                     int64_t min_ms, int64_t max_ms) {
  min_ms = std::max<int64_t>(min_ms, 1);
  max_ms = std::max(max_ms, min_ms);
  int64_t wait = min_ms;
  for (int64_t i = 1; i < attempt && wait < max_ms; ++i) wait *= 2;
  wait = std::min(wait, max_ms);
  // Whoever answers "come back in n seconds" means it, however long that is.
  if (retry_after) wait = std::max<int64_t>(retry_after->count(), 0);
  // What failed together shall not come back together.
  uint32_t random = 0;
  FillRandom(&random, sizeof(random));
  return std::chrono::milliseconds(wait + random % (min_ms / 20 + 1));
}

}  // namespace caisson::flow
