// A byte stream: TCP or TLS behind one face, so that everything above is written once.
//
// One coroutine may read while another writes; two readers or two writers at a time are a mistake.
// The first stream made sets SIGPIPE to "ignore" for the process (sendfile and splice know no
// MSG_NOSIGNAL); whoever runs programs must set it back to the default in the child.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "base/async.h"
#include "base/fd.h"

namespace caisson::http {

class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Stream() = default;

  // At least one byte, or 0 at the end of the stream.
  virtual Task<Result<size_t>> Read(std::span<char> buffer) = 0;
  // The same without waiting: errno EAGAIN (see WouldBlock) if there is nothing yet.
  virtual Result<size_t> TryRead(std::span<char> buffer) = 0;
  // All bytes of all parts, in one segment where the kernel allows it (head + body).
  virtual Task<Status> Write(std::string_view first, std::string_view second = {},
                             std::string_view third = {}) = 0;
  // `size` bytes of an open file from `offset`: sendfile(2) on a plain socket. A file that turns
  // out to be shorter is kDataLoss.
  virtual Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) = 0;
  // Resolves when the stream is readable or at its end; used to notice that the peer is gone.
  virtual Task<Status> WaitReadable() = 0;
  virtual Task<Status> WaitWritable() = 0;
  // Resolves when the connection is broken (reset), whatever is still unread.
  virtual Task<Status> WaitBroken() = 0;
  // No more writes (FIN / close_notify); reading goes on.
  virtual Task<void> ShutdownWrite() = 0;
  // Pending operations end with kCanceled; the stream stays open.
  virtual void Cancel() = 0;
  // Closes at once; pending operations end with kCanceled. With `reset`, TCP sends RST, which the
  // peer sees as an abnormal end.
  virtual void Close(bool reset = false) = 0;
  // The kernel socket if bytes on it are the bytes of the stream (plain TCP), else -1. For splice.
  virtual int PlainSocket() const = 0;
  // The peer's IP address without its port ("127.0.0.1", "::1"), or "unix".
  virtual std::string PeerAddress() const = 0;
  virtual asio::any_io_executor executor() = 0;

  // When the last byte moved, in either direction. Who moves bytes past the stream (splice on
  // PlainSocket) calls Progress().
  Clock::time_point last_progress() const { return last_progress_; }
  void Progress() { last_progress_ = Clock::now(); }

 private:
  Clock::time_point last_progress_ = Clock::now();
};

inline bool WouldBlock(const Error& error) { return error.sys_errno() == EAGAIN; }

// A connected TCP (or Unix) socket; takes the descriptor over, makes it non-blocking, TCP_NODELAY.
Result<std::unique_ptr<Stream>> MakeSocketStream(asio::any_io_executor executor, UniqueFd socket);

// Copies until the end of `from` or an error, then shuts down writing on `to`. Uses splice(2) where
// both are plain sockets and much moves, so that bulk does not pass through this process. Fails
// with kDeadlineExceeded when nothing moved on either stream, in either direction, for `idle`: two
// Pumps back to back make a tunnel that lives as long as one direction does.
Task<Status> Pump(Stream& from, Stream& to, std::chrono::milliseconds idle);

}  // namespace caisson::http
