// Running a helper program of the host (mkfs.ext4) from a single-threaded process.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

// Runs it to its end with a fixed PATH, no standard input and nothing inherited. A failure carries
// the end of what it wrote to standard error; after `timeout` it is killed.
Status RunProgram(const std::vector<std::string>& argv, std::chrono::milliseconds timeout);

}  // namespace caisson::engine
