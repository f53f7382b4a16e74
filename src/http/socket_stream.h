// A Stream on a kernel socket. TLS (http/tls.cc) replaces how bytes are encoded, nothing else.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <span>
#include <string>

#include "http/stream.h"

namespace caisson::http {

class SocketStream : public Stream {
 public:
  // Parts of one Write.
  using Parts = std::span<std::string_view>;

  // Makes the socket non-blocking and TCP_NODELAY; fails if the loop cannot watch it.
  Status Open(UniqueFd socket);
  explicit SocketStream(asio::any_io_executor executor) : socket_(std::move(executor)) {}

  Task<Result<size_t>> Read(std::span<char> buffer) override;
  Result<size_t> TryRead(std::span<char> buffer) override;
  Task<Status> Write(std::string_view first, std::string_view second,
                     std::string_view third) override;
  Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) override;
  Task<Status> WaitReadable() override;
  Task<Status> WaitWritable() override;
  Task<Status> WaitBroken() override;
  Task<void> ShutdownWrite() override;
  void Cancel() override;
  void Close(bool reset) override;
  int PlainSocket() const override { return fd_; }
  std::string PeerAddress() const override;
  asio::any_io_executor executor() override { return socket_.get_executor(); }

 protected:
  int fd() const { return fd_; }
  // Sends what the kernel takes now; EAGAIN if nothing. Empty parts are allowed, not all of them.
  virtual Result<size_t> TryWrite(Parts parts);
  // Operations that never have to wait would keep the loop to themselves; this lets others run
  // after each megabyte.
  Task<void> ShareLoop(size_t moved);

 private:
  Task<Status> Wait(asio::posix::stream_descriptor::wait_type what);

  asio::posix::stream_descriptor socket_;
  int fd_ = -1;
  size_t moved_without_wait_ = 0;
};

// Removes the first `n` bytes from parts.
void Advance(SocketStream::Parts parts, size_t n);

}  // namespace caisson::http
