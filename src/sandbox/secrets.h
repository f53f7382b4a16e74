// The server's secret and the tokens made from it. Tokens are derived, not stored: they survive
// restarts, and a stolen database opens no sandbox.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::sandbox {

// Reads <data_dir>/secret (mode 0600), or makes it from 32 random bytes at the first start.
Result<std::string> LoadSecret(const std::string& data_dir);

// What a client of envd sends as X-Access-Token.
std::string AccessToken(std::string_view secret, std::string_view sandbox_id);
// What envd itself asks for. SECURITY: a copy of a sandbox has all that was in its origin's memory,
// so the access token stays outside: the gateway takes this in its place, which opens no door of
// ours.
std::string InsideToken(std::string_view secret, std::string_view sandbox_id);
// What a client of a private port sends as e2b-traffic-access-token.
std::string TrafficToken(std::string_view secret, std::string_view sandbox_id);

}  // namespace caisson::sandbox
