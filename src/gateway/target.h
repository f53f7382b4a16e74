// Which requests are traffic into a sandbox, and into which port of which.
//
//   1. host name    PORT-ID.DOMAIN, PORT-ID.localhost, PORT-ID.anything.localhost (any port)
//   2. headers      E2b-Sandbox-Id + E2b-Sandbox-Port, on any other host
//   3. signed URL   /files?...&signature=... without both (an SDK's downloadUrl()/uploadUrl())
//
// The first that fits wins: a page served from one sandbox's host name cannot reach another sandbox
// by adding headers. Everything else belongs to the control plane.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::gateway {

struct Target {
  enum class Kind {
    kControlPlane,
    kSandbox,    // `sandbox_id` and `port` are set
    kSignedUrl,  // the sandbox is the one whose token made the signature
    kInvalid,    // `message` says what is wrong; answered with 400
  };
  Kind kind = Kind::kControlPlane;
  std::string sandbox_id;
  uint16_t port = 0;
  std::string message;
};

// `domain`: the configured one; a port in it is ignored.
Target FindTarget(const http::RequestHead& request, std::string_view domain);

// A Host header without its port, in lower case; the brackets of an IPv6 literal are kept.
std::string HostName(std::string_view host_header);

}  // namespace caisson::gateway
