// How many files each process of a sandbox may have open. Set when it starts (child.cc); from then
// on it only becomes less: to raise it again takes CAP_SYS_RESOURCE, which the engine gives up.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "engine/cgroup.h"

namespace caisson::engine {

// The most that this process, and so any sandbox, may have.
int64_t HostOpenFiles();
// Lowers the limit of every process in it that has a higher one. What they start inherits it.
// kResourceExhausted: they multiply too fast.
Status LimitOpenFiles(const Cgroup& cgroup, int64_t limit);

}  // namespace caisson::engine
