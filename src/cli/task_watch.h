// Showing the work on a task while it is done.
#pragma once

#include <boost/json/object.hpp>

#include "base/async.h"
#include "cli/api_client.h"

namespace caisson::cli {

// Follows one execution from its first event to its end, over restarts of the server. With
// `as_json` every event is a line of JSON. 0 if it went well, 1 if not.
Task<Result<int>> WatchExecution(ApiClient& client, std::string execution_id, bool as_json);

// The lines for people that an event is shown by, "" for none: "[ 15 %] clone: cloning ...".
std::string EventText(const boost::json::object& event);

}  // namespace caisson::cli
