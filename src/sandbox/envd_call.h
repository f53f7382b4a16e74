// Calls of the server's own to the envd inside a sandbox.
#pragma once

#include <string>

#include "base/async.h"
#include "base/fd.h"
#include "http/message.h"
#include "http/stream.h"

namespace caisson::sandbox {

// Connects `socket` (see engine::Driver::Dial) to envd.
Task<Result<std::unique_ptr<http::Stream>>> ConnectEnvd(UniqueFd socket);

// The same, and asks once; answers are bounded. Reacts to cancellation: the caller brings the
// deadline.
Task<Result<http::Response>> CallEnvd(UniqueFd socket, http::RequestHead request, std::string body);

}  // namespace caisson::sandbox
