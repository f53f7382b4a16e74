// Directories whose contents mean nothing after the next boot of the machine: the table of slots,
// the records of sandboxes. Sandboxes come and go by the hundred per second, and on some file
// systems (ext4 without a journal) making a file gets slow when many were deleted just before, so
// such a directory is kept in memory where that is possible.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::engine {

// Makes `path` a directory with mode 0700 if it is none. If it would not be on a tmpfs but /dev/shm
// is, `path` becomes a link to /dev/shm/caisson/<name>.
Status MakeBootDirectory(const std::string& path, const std::string& name);
// Removes it again if it is empty, also when `path` itself is gone already.
void RemoveBootDirectory(const std::string& path, const std::string& name);

}  // namespace caisson::engine
