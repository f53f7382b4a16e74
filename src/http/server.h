// The HTTP/1.1 server: keep-alive, chunked bodies both ways, streaming, limits, slow-client
// defence, graceful stop. One loop thread; a handler is a coroutine on it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/async.h"
#include "http/message.h"
#include "http/pipe.h"
#include "http/stream.h"

namespace caisson::http {

struct ServerOptions {
  size_t max_connections = 10'000;  // more are closed at accept
  size_t max_per_peer = 0;  // likewise, from one address that is not this machine's; 0 = unlimited
  size_t max_header_bytes = 64 << 10;  // 431 above
  // First byte to the end of the header: 408, close. A new connection may be silent for as long.
  std::chrono::milliseconds header_timeout{20'000};
  std::chrono::milliseconds idle_timeout{620'000};       // keep-alive without a request
  std::chrono::milliseconds body_stall_timeout{60'000};  // no progress reading or writing a body
  // How long to read on what a refused client still sends, so that it sees the answer.
  std::chrono::milliseconds linger_timeout{2'000};
};

// One request and its answer. Valid until the handler returns. The handler must answer exactly
// once: Send(), or StartStream() + Write()* + FinishStream(), or Upgrade(). If it returns without
// an answer, or throws, the server answers 500 (or cuts the connection if the answer had begun).
class Exchange {
 public:
  virtual ~Exchange() = default;

  const RequestHead& request() const { return head_; }
  // Unique per request; also sent back as X-Request-Id and usable in logs.
  const std::string& request_id() const { return request_id_; }
  virtual std::string PeerAddress() const = 0;  // without the port
  virtual bool IsTls() const = 0;
  virtual asio::any_io_executor executor() const = 0;

  // ---- request body ----------------------------------------------------------
  // Content-Length if the client sent one.
  virtual std::optional<uint64_t> ContentLength() const = 0;
  virtual bool HasBody() const = 0;
  // The next bytes; 0 at the end. Answers `Expect: 100-continue` on the first read.
  virtual Task<Result<size_t>> Read(std::span<char> buffer) = 0;
  // The same into a pipe, while CanReadPipe(): for large bodies that are only passed on.
  virtual Task<Result<size_t>> ReadPipe(Pipe&) { co_return NoPipe(); }
  virtual bool CanReadPipe() const { return false; }
  // The whole body; kOutOfRange above `max_bytes` (a handler that returns then without an answer
  // lets the server answer 413; a broken body 400).
  Task<Result<std::string>> ReadAll(size_t max_bytes);

  // ---- answer ------------------------------------------------------------------
  virtual Task<Status> Send(Response response) = 0;
  // Begins a streamed answer: with `content_length` exactly that many bytes follow, else chunked
  // (until close for HTTP/1.0). Nothing is buffered: every Write is on the wire when it returns.
  // `first` and `last` are body bytes that travel in the same segment as the head and the end.
  virtual Task<Status> StartStream(ResponseHead head, std::optional<uint64_t> content_length,
                                   std::string_view first = {}) = 0;
  virtual Task<Status> Write(std::string_view data) = 0;
  // Writes `size` bytes of a pipe, while CanWritePipe(): a stream with content_length, a plain
  // socket.
  virtual Task<Status> WritePipe(Pipe&, size_t) { co_return NoPipe(); }
  virtual bool CanWritePipe() const { return false; }
  virtual Task<Status> FinishStream(std::string_view last = {}) = 0;
  // Sends `size` bytes of an open file from `offset` inside a stream with content_length
  // (sendfile(2) on plain sockets).
  virtual Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) = 0;
  // Ends the connection abnormally (RST): the client must notice that the answer is not complete.
  virtual void Abort() = 0;
  // Waits until the client is gone (EOF or error while no request byte is expected). For handlers
  // that stream rarely: co_await (Work() || exchange.ClientGone()).
  virtual Task<void> ClientGone() = 0;
  // Takes the connection over, for WebSockets and other upgrades: the caller writes the 101 answer
  // itself. `buffered` receives bytes that were already read past the header.
  virtual Result<std::unique_ptr<Stream>> Upgrade(std::string& buffered) = 0;
  // True once any answer has begun.
  virtual bool answered() const = 0;
  // The status of the answer; 0 until it begins, and for an upgrade.
  unsigned status() const { return status_; }

 protected:
  static tl::unexpected<Error> NoPipe() {
    return Fail(Code::kUnimplemented, "this exchange does not work with pipes");
  }

  RequestHead head_;
  std::string request_id_;
  unsigned status_ = 0;
  // What the server answers if the handler does not.
  unsigned fallback_status_ = 500;
};

using Handler = std::function<Task<void>(Exchange&)>;

// How a plain socket becomes a stream; TLS is a different one (http/tls.h). Runs per connection.
using StreamFactory =
    std::function<Task<Result<std::unique_ptr<Stream>>>(asio::any_io_executor, UniqueFd socket)>;

class Server {
 public:
  // `handler` is called for every request, whatever its target.
  Server(asio::any_io_executor executor, ServerOptions options, Handler handler,
         StreamFactory factory = {});
  ~Server();

  // Binds and starts to accept. "127.0.0.1:8000", "[::1]:8000"; port 0 takes a free one.
  Status Listen(const std::string& address);
  // Starts to accept on a listening socket made elsewhere (a privileged parent, a test). At a Unix
  // socket only connections of this process are taken.
  Status Adopt(UniqueFd listening_socket);
  uint16_t port() const;
  size_t connections() const;
  // Stops accepting, ends idle connections, gives running handlers `grace`, then cancels them.
  Task<void> Stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with the connections, which may end after the server
};

// Begins a new row of request ids in this thread: for a process that goes on from a copy of
// another one's memory and must not continue its row.
void RenewRequestIds();

}  // namespace caisson::http
