// Whole-file helpers for small files (settings, keys, kernel files).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson {

// Reads to the end (kernel files report no size); more than `max_size` bytes is kOutOfRange.
Result<std::string> ReadFile(const std::string& path, size_t max_size = 16 << 20);
// Writes an existing kernel file (cgroup, proc) with a single write(2).
Status WriteKernelFile(const std::string& path, std::string_view data);
// Replaces a file atomically (temporary file, fsync, rename), with this mode from the first byte.
Status WriteFileAtomic(const std::string& path, std::string_view data, unsigned mode);
// Deletes a tree without following links and without leaving the file system; missing is success.
Status RemoveTree(const std::string& path);

}  // namespace caisson
