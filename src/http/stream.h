// A byte stream: TCP or TLS behind one face, so that everything above is written once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/async.h"
#include "base/fd.h"

namespace caisson::http {

class Stream {
 public:
  virtual ~Stream() = default;

  // At least one byte, or 0 at the end of the stream.
  virtual Task<Result<size_t>> Read(std::span<char> buffer) = 0;
  // All bytes of both parts, in one segment where the kernel allows it (head + body).
  virtual Task<Status> Write(std::string_view first, std::string_view second = {}) = 0;
  // Resolves when the stream is readable or at its end; used to notice that the peer is gone.
  virtual Task<Status> WaitReadable() = 0;
  // No more writes (FIN / close_notify); reading goes on.
  virtual Task<void> ShutdownWrite() = 0;
  // Closes at once; pending operations end with kCanceled. With `reset`, TCP sends RST, which the
  // peer sees as an abnormal end.
  virtual void Close(bool reset = false) = 0;
  // The kernel socket if bytes on it are the bytes of the stream (plain TCP), else -1. For splice.
  virtual int PlainSocket() const = 0;
  virtual std::string PeerAddress() const = 0;
};

// A connected TCP (or Unix) socket; takes the descriptor over, makes it non-blocking, TCP_NODELAY.
Result<std::unique_ptr<Stream>> MakeSocketStream(asio::any_io_executor executor, UniqueFd socket);

// Copies until the end of `from` or an error, then shuts down writing on `to`. Uses splice(2) where
// both are plain sockets, so the bytes do not pass through this process. Fails with
// kDeadlineExceeded when nothing moved for `idle`.
Task<Status> Pump(Stream& from, Stream& to, std::chrono::milliseconds idle);

}  // namespace caisson::http
