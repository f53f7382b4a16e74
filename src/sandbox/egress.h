// What a sandbox may reach, as its row says.
#pragma once

#include "base/error.h"
#include "engine/engine.h"

namespace caisson::sandbox {

// `network_json`: the network settings as asked for (NetworkOptions::as_requested_json), of which
// allowOut and denyOut count. Without `allow_internet` everything that is not allowed is denied.
// Fails when they are not of that form, or make no sense (engine::CheckEgress).
Result<engine::Egress> MakeEgress(bool allow_internet, const std::string& network_json);

}  // namespace caisson::sandbox
