// The limits of a sandbox in messages: an extension of ours, with the names that E2B's answers use.
#pragma once

#include <boost/json/object.hpp>

#include "sandbox/manager.h"

namespace caisson::e2b {

// {"cpuCount","memoryMB","diskSizeMB","pids","openFiles","outputKBps"}, all optional. Another name
// is kInvalidArgument: a limit that is not kept must not look as if it were.
Result<sandbox::LimitOptions> DecodeLimits(const boost::json::object& limits);
// All six; outputKBps 0 = unlimited.
boost::json::object EncodeLimits(const sandbox::Info& info);

}  // namespace caisson::e2b
