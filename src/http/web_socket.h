// WebSockets (RFC 6455), the server's side: the handshake, whole messages in, frames out.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "http/server.h"
#include "http/stream.h"
#include "http/web_socket_frame.h"

namespace caisson::http {

// The answer to a client's Sec-WebSocket-Key.
std::string AcceptKey(std::string_view key);

// Whether the request asks for a WebSocket at all.
bool WantsWebSocket(const RequestHead& request);

struct WebSocketOptions {
  size_t max_message = 1 << 20;            // larger ones of the client close it
  size_t max_waiting = 2 << 20;            // bytes of frames that the client has not taken
  std::chrono::milliseconds ping{30'000};  // a client that is silent for two of these is gone
};

// One coroutine reads, another one runs Write(); both end when the socket is closed.
class WebSocket {
 public:
  // Takes the connection over and answers 101. kInvalidArgument: the handshake is not one that
  // this server understands (another version, no key); the exchange can still be answered.
  static Task<Result<std::unique_ptr<WebSocket>>> Accept(Exchange& exchange,
                                                         WebSocketOptions options);

  // The next text or binary message; nothing once the client has closed, was told to go, or is
  // gone. Pings are answered on the way.
  Task<std::optional<WebSocketMessage>> Read();
  // Writes what is sent until the socket is closed or the client does not take it any more.
  Task<void> Write();

  // Queued; false if more would wait than may, or nothing can be sent any more.
  bool Send(WebSocketMessage::Kind kind, std::string_view data);
  bool open() const { return !closing_ && !read_ended_; }
  size_t waiting() const { return waiting_; }  // bytes
  // Called whenever bytes have left.
  void OnDrained(std::function<void()> drained) { drained_ = std::move(drained); }
  // Ends it at once: for a client that takes nothing.
  void Abort();
  // What is queued is still written, then the client is told why.
  void Close(CloseCode code, std::string_view reason);

 private:
  WebSocket(std::unique_ptr<Stream> stream, std::string buffered, WebSocketOptions options);
  void Queue(std::string frame);
  void EndReading();
  // False: the client does not take it.
  Task<bool> WriteQueued();
  // Lets the client read the reason before the connection is gone.
  Task<void> Linger();

  const WebSocketOptions options_;
  std::unique_ptr<Stream> stream_;
  FrameParser parser_;
  std::deque<std::string> queue_;
  size_t waiting_ = 0;
  std::function<void()> drained_;
  Condition changed_;
  bool closing_ = false;     // the close frame is queued: nothing goes behind it
  bool read_ended_ = false;  // nothing comes from the client any more
  std::chrono::steady_clock::time_point heard_;  // of the client
};

}  // namespace caisson::http
