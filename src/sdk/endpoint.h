// Where a server is: http:// or https://HOST[:PORT].
#pragma once

#include <memory>
#include <string>

#include "base/async.h"
#include "http/client.h"

namespace caisson::sdk {

struct Endpoint {
  std::string url;        // without a slash at its end
  std::string host_port;  // always with a port
  bool tls = false;
  std::string ca_file;  // an authority to trust besides the system's, or ""

  // Fails with a sentence if it is anything else.
  static Result<Endpoint> Parse(std::string url, std::string ca_file = "");
  std::string Host() const;  // without the port
  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect(
      std::chrono::milliseconds timeout, http::ClientOptions options = {}) const;
};

}  // namespace caisson::sdk
