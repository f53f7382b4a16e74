// The way out of the broker: where a base URL leads, one request there, its answer back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "git/request_body.h"
#include "http/client.h"
#include "http/server.h"

namespace caisson::git {

struct Origin {
  bool tls = true;
  std::string host_port;  // with the port, as one connects to it
  std::string host;       // as it stands in the URL, for the Host header
  std::string path;       // without a slash at its end; "" mostly
  // Named by a client, not by the operator: only addresses of the internet (internet.h), by TLS.
  bool internet_only = false;
};
// "https://host[:port][/path]", or http.
Result<Origin> ParseOrigin(std::string_view base_url);
// Where a redirection leads: a target at the same origin, or nothing if it is another one.
std::optional<std::string> SameOriginTarget(const Origin& origin, std::string_view location);

struct UpstreamLimits {
  std::chrono::milliseconds connect_timeout{30'000};
  std::chrono::milliseconds stall_timeout{300'000};
  size_t max_header_bytes = 64 << 10;
};
Task<Result<std::unique_ptr<http::ClientConnection>>> ConnectTo(Origin origin,
                                                                UpstreamLimits limits);

// One request out and its answer back. Both bodies move at the same time, piece by piece: neither
// is ever held whole, and the slower side sets the pace.
class Relay {
 public:
  enum class End {
    kPassed,      // a complete answer went through
    kStatus,      // an answer that was not passed on; status(), location() and text() tell
    kNoAnswer,    // failed before there was one; text() says why
    kBroken,      // failed in the middle of it
    kClientGone,  // nobody waits for it any more
  };
  // `passes`: whether an answer of this status goes in, and its headers as they shall be there.
  using Filter = std::function<std::optional<http::Headers>(const http::ResponseHead& head)>;

  // All outlive it.
  Relay(http::Exchange& exchange, http::ClientConnection& connection, RequestBody& body,
        Filter filter);
  Task<End> Run(http::RequestHead head);

  unsigned status() const { return status_; }
  const std::string& location() const { return location_; }
  // What the answer says, if it is text for people; at most 1000 bytes.
  const std::string& text() const { return text_; }

 private:
  Task<End> Receive();
  Task<End> PassAnswer();
  Task<void> ReadText();
  Task<void> Supply();

  http::Exchange& exchange_;
  http::ClientConnection& connection_;
  RequestBody& body_;
  Filter filter_;
  unsigned status_ = 0;
  std::string location_;
  std::string text_;
};

}  // namespace caisson::git
