// Trying something that may fail, hang or leave namespaces and mounts behind: in a process of its
// own, which is ended afterwards together with all of that.
#pragma once

#include <chrono>
#include <functional>

#include "base/error.h"

namespace caisson::engine {

// Runs `body` in a forked child and returns what it returned (codes become kFailedPrecondition).
// A child that crashes or takes longer than `timeout` is an error. Call it only from a
// single-threaded process.
Status TryInChild(const std::function<Status()>& body,
                  std::chrono::milliseconds timeout = std::chrono::seconds(10));

}  // namespace caisson::engine
