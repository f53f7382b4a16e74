// Connecting by name.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
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

// Says why one must not connect to an address.
using AddressCheck = std::function<Status(const asio::ip::address& address)>;

// A connected TCP socket, name resolution included. The caller sets the deadline. With a `check`
// every address that the name leads to must pass it, before one of them is connected to.
Task<Result<UniqueFd>> Dial(HostPort where, AddressCheck check = {});

}  // namespace caisson::http
