// Connecting by name.
#pragma once

#include <string>
#include <string_view>

#include "base/async.h"
#include "base/fd.h"

namespace caisson::http {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  uint16_t port = 0;
};
Result<HostPort> ParseHostPort(std::string_view text);

// A connected TCP socket, name resolution included. The caller sets the deadline.
Task<Result<UniqueFd>> Dial(HostPort where);

}  // namespace caisson::http
