// The client-streaming half of Connect-RPC, for the one method that needs it: StreamInput.
#pragma once

#include <boost/json/object.hpp>
#include <optional>

#include "base/async.h"
#include "http/server.h"

namespace caisson::envd {

// The next message of the request as soon as it is complete; nothing at the end of the request.
Task<Result<std::optional<boost::json::object>>> ReadClientMessage(http::Exchange& exchange,
                                                                   size_t max_bytes);

// Ends the call: one empty message and the end of the stream, or the error in the latter. May be
// sent before the request is complete.
Task<void> AnswerClientStream(http::Exchange& exchange, Status result);

}  // namespace caisson::envd
