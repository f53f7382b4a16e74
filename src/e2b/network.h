// The network part of E2B's requests: checked as E2B checks it, and refused where this server would
// not keep what it promises.
#pragma once

#include <boost/json/object.hpp>

#include "sandbox/manager.h"

namespace caisson::e2b {

struct NetworkSettings {
  bool allow_internet = true;
  sandbox::NetworkOptions options;
};

// `allow_internet_access` and `network` of a create request. Errors: kInvalidArgument (400),
// kPermissionDenied (403: egressProxy), kUnimplemented (501).
Result<NetworkSettings> DecodeNetwork(const boost::json::object& create, bool secure);

// PUT /sandboxes/{id}/network: replaces what the sandbox may reach (absent = cleared); the way in
// stays as `current` says.
Result<NetworkSettings> DecodeNetworkUpdate(const boost::json::object& update,
                                            const sandbox::NetworkOptions& current);

}  // namespace caisson::e2b
