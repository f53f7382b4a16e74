// Connecting to a port of a sandbox's own loopback.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/async.h"
#include "base/fd.h"
#include "gateway/directory.h"

namespace caisson::gateway {

// A connection to `port` of a sandbox: 127.0.0.1, then, if nobody listens there, ::1. A closed port
// is an error whose errno is ECONNREFUSED; a listener that does not accept within `timeout` is
// kDeadlineExceeded; a sandbox that is gone is kNotFound.
Task<Result<UniqueFd>> ConnectLoopback(Directory& directory, std::string sandbox_id, uint16_t port,
                                       std::chrono::milliseconds timeout);

}  // namespace caisson::gateway
