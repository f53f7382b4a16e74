// Where a port of a sandbox is reached from outside.
#pragma once

#include <string>

#include "base/config.h"
#include "sandbox/provider.h"

namespace caisson::work {

// "http://3000-id.domain:8000". `server_port` is the one this server listens on; `backend_id` the
// provider's.
std::string PreviewUrl(const sandbox::Provider& provider, const Config& config,
                       uint16_t server_port, const std::string& backend_id, uint16_t port);

}  // namespace caisson::work
