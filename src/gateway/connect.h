// Connecting a socket that lives in a sandbox's network to a port of the sandbox's own loopback.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/async.h"
#include "base/fd.h"

namespace caisson::gateway {

// `socket` is an unconnected dual-stack IPv6 TCP socket (sandbox::Manager::Dial). Tries 127.0.0.1,
// then, if nobody listens there, ::1. A closed port is an error whose errno is ECONNREFUSED; a
// listener that does not accept within `timeout` is kDeadlineExceeded.
Task<Result<UniqueFd>> ConnectLoopback(UniqueFd socket, uint16_t port,
                                       std::chrono::milliseconds timeout);

}  // namespace caisson::gateway
