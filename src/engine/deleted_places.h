// Where the deleted files lay that processes hold (deleted_files.h), by CRIU's own images: there it
// puts them back for a moment when the processes go on.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

// The paths of those that are to be put back. kUnimplemented: one of them cannot be; kDataLoss:
// these are no such images.
Result<std::vector<std::string>> DeletedPlaces(std::string_view remaps, std::string_view files);

// Whether each of them can be put back where it was, in the root of the first process; all are
// frozen. kUnimplemented: no, and why.
Status CheckDeletedPlaces(int images, pid_t first);

}  // namespace caisson::engine
