// Exchanges with one HTTP server: a few kept connections, and a deadline for each exchange.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "http/client.h"

namespace caisson::forge {

struct Endpoint {
  bool tls = true;
  std::string host_port;  // "api.github.com:443"
  std::string host;       // as the Host header names it
  std::string prefix;     // "/api/v3", or ""
};
// From "https://host[:port][/prefix]"; http:// is for tests and closed networks.
Result<Endpoint> ParseEndpoint(std::string_view url);

class Transport {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Transport(asio::any_io_executor executor, Endpoint endpoint);

  struct Outcome {
    Result<http::Response> answer;  // of any status
    bool maybe_done = false;        // no answer, but the request may have been carried out
  };
  // `repeatable`: being sent to a connection that is just closed does no harm.
  Task<Outcome> Exchange(http::RequestHead head, std::string body, bool repeatable,
                         Milliseconds timeout);
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  using Connection = std::unique_ptr<http::ClientConnection>;
  struct Idle {
    Connection connection;
    std::chrono::steady_clock::time_point since;
  };

  Task<Result<Connection>> Take(bool fresh, Milliseconds timeout);
  Task<Status> WaitForTurn(Milliseconds timeout);
  void Keep(Connection connection);

  Endpoint endpoint_;
  std::vector<Idle> idle_;
  size_t busy_ = 0;
  Condition freed_;
};

}  // namespace caisson::forge
