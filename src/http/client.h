// One HTTP/1.1 client connection, for proxying into sandboxes and for calling APIs. Streaming in
// both directions; the caller pools connections if it wants to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/message.h"
#include "http/pipe.h"
#include "http/stream.h"

namespace caisson::http {

struct ClientOptions {
  size_t max_header_bytes = 64 << 10;
  std::chrono::milliseconds stall_timeout{620'000};  // no byte for so long: kDeadlineExceeded
};

class ClientConnection {
 public:
  // Over any stream (a TLS stream, a socket the engine made inside a sandbox).
  ClientConnection(std::unique_ptr<Stream> stream, ClientOptions options = {});
  ~ClientConnection();

  // Connects to "host:port" by TCP, name resolution included.
  static Task<Result<std::unique_ptr<ClientConnection>>> Connect(std::string host_port,
                                                                 std::chrono::milliseconds timeout,
                                                                 ClientOptions options = {});

  // Writes a request head. Framing is decided here: `content_length` 0 = no body, a number =
  // exactly so many bytes, nullopt = chunked. Framing headers in `head` are replaced. `first` are
  // bytes of the body that travel in the same segment.
  Task<Status> SendHead(RequestHead head, std::optional<uint64_t> content_length,
                        std::string_view first = {});
  Task<Status> WriteBody(std::string_view data);
  // Writes `size` bytes of a pipe, while CanWritePipe(): a body with a length, a plain socket.
  Task<Status> WritePipe(Pipe& pipe, size_t size);
  bool CanWritePipe() const;
  Task<Status> FinishBody();
  // Reads the response head; 1xx answers except 101 are skipped.
  Task<Result<ResponseHead>> ReadHead();
  // Length of the response body if known before it is read.
  std::optional<uint64_t> ContentLength() const;
  // The next bytes of the (de-chunked) body; 0 at its end.
  Task<Result<size_t>> ReadBody(std::span<char> buffer);

  // The same into a pipe, while CanReadPipe().
  Task<Result<size_t>> ReadPipe(Pipe& pipe);
  bool CanReadPipe() const;

  // A whole small exchange. The body of the answer is bounded.
  Task<Result<Response>> Fetch(RequestHead head, std::string body, size_t max_bytes);

  // True after a complete exchange if both sides want to keep the connection.
  bool Reusable() const;
  // After a 101: hands the stream over; `buffered` receives what was read past the header.
  std::unique_ptr<Stream> TakeStream(std::string& buffered);
  Stream& stream();
  void Close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::http
