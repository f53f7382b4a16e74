// Connect-RPC (protocol version 1, JSON codec) on top of an Exchange: what E2B's envd speaks.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/async.h"
#include "http/server.h"

namespace caisson::http {

// An envelope of the streaming protocol: flag byte, big-endian length, payload.
std::string Envelope(std::string_view payload, uint8_t flags = 0);

struct ReceivedEnvelope {
  uint8_t flags = 0;
  std::string payload;
};
// The next envelope of a request; nothing at its end. kInvalidArgument: cut off, or compressed.
// kResourceExhausted: larger than `max_bytes`.
Task<Result<std::optional<ReceivedEnvelope>>> ReadEnvelope(Exchange& exchange, size_t max_bytes);

// The client's Connect-Timeout-Ms; nothing when absent (no limit).
std::optional<std::chrono::milliseconds> ConnectTimeout(const RequestHead& request);

// `more` below: header fields added to a successful answer.

// Unary: reads the JSON request (an empty body is {}), answers 200 application/json with the
// result, or the error's status with {"code","message"}.
using UnaryMethod =
    std::function<Task<Result<boost::json::object>>(Exchange&, boost::json::object request)>;
Task<void> ServeUnary(Exchange& exchange, const UnaryMethod& method, size_t max_request_bytes,
                      Headers more = {});

// The sending half of a server stream.
class MessageStream {
 public:
  explicit MessageStream(Exchange& exchange, Headers more = {})
      : exchange_(exchange), more_(std::move(more)) {}
  // Sends one message; the stream head goes out with the first.
  Task<Status> Send(const boost::json::object& message);
  // Sends an already serialised JSON message (hot path: process output).
  Task<Status> SendRaw(std::string_view json);
  Exchange& exchange() { return exchange_; }

 private:
  friend Task<void> ServeStream(
      Exchange&, const std::function<Task<Status>(MessageStream&, boost::json::object)>&, size_t,
      Headers);
  Task<Status> Start(std::string_view first);
  Exchange& exchange_;
  Headers more_;
  bool started_ = false;
};

// Server stream: reads one request envelope, runs `method`, closes with an EndStream envelope: {}
// or {"error":{"code","message"}}. Errors before the first message travel the same way (HTTP 200).
using StreamMethod =
    std::function<Task<Status>(MessageStream& stream, boost::json::object request)>;
Task<void> ServeStream(Exchange& exchange, const StreamMethod& method, size_t max_request_bytes,
                       Headers more = {});

}  // namespace caisson::http
