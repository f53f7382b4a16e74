// Who may ask (access token, URL signature) and as which Linux user (contract 3.2 and 3.3).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "envd/settings.h"
#include "envd/user.h"
#include "http/message.h"

namespace caisson::envd {

inline constexpr std::string_view kTokenHeader = "X-Access-Token";

// True if the request carries the sandbox's token, or the sandbox has none.
bool HasToken(const http::RequestHead& request, const Settings& settings);

// /files: a token in the header, or a signature in the query. `operation` is "read" or "write".
// Every failure is kUnauthenticated with the exact text that clients compare.
Status CheckFileAccess(const http::RequestHead& request, const http::Query& query,
                       std::string_view operation, const Settings& settings, Time now);

// The user an RPC runs as: the name of Basic credentials, else the default user. An unknown one is
// kUnauthenticated "invalid username: '<name>'".
Result<User> RpcUser(const http::RequestHead& request, const Settings& settings);
// The user of a /files request: `username`, else the default user.
Result<User> FileUser(std::optional<std::string_view> username, const Settings& settings);

}  // namespace caisson::envd
