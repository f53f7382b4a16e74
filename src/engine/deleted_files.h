// Files that processes hold although they have no name any more. Whoever saves the processes must
// save the content, too, and it is the guest's choice how much that is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

// How the names of CRIU's copies of them begin.
inline constexpr const char* kDeletedFile = "ghost-file-";

// The bytes of those in the root file system of the first process; all are frozen. Stops as soon as
// it is more than `most`. kOutOfRange: they have too much open to be looked through. Not seen are
// those that wait in a message from one process to another.
Result<int64_t> CountDeletedBytes(pid_t first, const std::vector<pid_t>& processes, int64_t most,
                                  std::chrono::steady_clock::time_point deadline);

// The bytes of CRIU's copies in this directory.
int64_t CountCopiedBytes(int images);

}  // namespace caisson::engine
