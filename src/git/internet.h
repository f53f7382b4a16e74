// Where the server may connect for a client that named the host: the internet, and nothing that
// only the server itself can reach.
#pragma once

#include <boost/asio/ip/address.hpp>

#include "base/async.h"

namespace caisson::git {

// kFailedPrecondition with a sentence for addresses that are loopback, private, link-local, of
// metadata services, reserved, or this machine's own, in whatever form.
Status CheckInternet(const asio::ip::address& address);

}  // namespace caisson::git
