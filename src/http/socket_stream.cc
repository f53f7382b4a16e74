#include "http/socket_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace caisson::http {
namespace {

constexpr size_t kShareAfter = 1 << 20;
constexpr size_t kFilePiece = 1 << 20;

// sendfile(2), splice(2) and OpenSSL write to sockets without MSG_NOSIGNAL.
void IgnoreSigpipe() {
  static const bool done = [] {
    signal(SIGPIPE, SIG_IGN);
    return true;
  }();
  (void)done;
}

bool Interrupted(ssize_t n) { return n < 0 && errno == EINTR; }

}  // namespace

void Advance(SocketStream::Parts parts, size_t n) {
  for (std::string_view& part : parts) {
    size_t taken = std::min(n, part.size());
    part.remove_prefix(taken);
    n -= taken;
  }
}

Status SocketStream::Open(UniqueFd socket) {
  IgnoreSigpipe();
  TRY(SetNonBlocking(socket.get()));
  int on = 1;
  // Fails on Unix sockets, which do not delay anyway.
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  boost::system::error_code ec;
  socket_.assign(socket.get(), ec);
  if (ec) return tl::unexpected(FromEc(ec, "watching a socket"));
  fd_ = socket.Release();
  return {};
}

Task<void> SocketStream::ShareLoop(size_t moved) {
  moved_without_wait_ += moved;
  if (moved_without_wait_ < kShareAfter) co_return;
  moved_without_wait_ = 0;
  co_await asio::post(socket_.get_executor(), asio::use_awaitable);
}

Task<Status> SocketStream::Wait(asio::posix::stream_descriptor::wait_type what) {
  moved_without_wait_ = 0;
  auto [ec] = co_await socket_.async_wait(what, kAwait);
  if (ec == asio::error::bad_descriptor) ec = asio::error::operation_aborted;  // closed meanwhile
  if (ec) co_return tl::unexpected(FromEc(ec, "waiting for a connection"));
  co_return Status();
}

Task<Status> SocketStream::WaitReadable() { return Wait(socket_.wait_read); }
Task<Status> SocketStream::WaitWritable() { return Wait(socket_.wait_write); }
Task<Status> SocketStream::WaitBroken() { return Wait(socket_.wait_error); }

Result<size_t> SocketStream::TryRead(std::span<char> buffer) {
  ssize_t n;
  do {
    n = recv(fd_, buffer.data(), buffer.size(), 0);
  } while (Interrupted(n));
  if (n < 0) return FailErrno("reading from a connection");
  Progress();
  return static_cast<size_t>(n);
}

Task<Result<size_t>> SocketStream::Read(std::span<char> buffer) {
  for (;;) {
    auto n = TryRead(buffer);
    if (n) {
      co_await ShareLoop(*n);
      co_return n;
    }
    if (!WouldBlock(n.error())) co_return n;
    CO_TRY(co_await WaitReadable());
  }
}

Result<size_t> SocketStream::TryWrite(Parts parts) {
  std::array<iovec, 3> pieces;
  msghdr message{};
  message.msg_iov = pieces.data();
  for (std::string_view part : parts)
    if (!part.empty()) pieces[message.msg_iovlen++] = {const_cast<char*>(part.data()), part.size()};
  ssize_t n;
  do {
    n = sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (Interrupted(n));
  if (n < 0) return FailErrno("writing to a connection");
  Progress();
  return static_cast<size_t>(n);
}

Task<Status> SocketStream::Write(std::string_view first, std::string_view second,
                                 std::string_view third) {
  std::array<std::string_view, 3> parts{first, second, third};
  size_t left = first.size() + second.size() + third.size();
  while (left > 0) {
    auto n = TryWrite(parts);
    if (n) {
      Advance(parts, *n);
      left -= *n;
      co_await ShareLoop(*n);
    } else if (WouldBlock(n.error())) {
      CO_TRY(co_await WaitWritable());
    } else {
      co_return tl::unexpected(std::move(n).error());
    }
  }
  co_return Status();
}

Task<Status> SocketStream::SendFile(int fd, uint64_t offset, uint64_t size) {
  auto position = static_cast<off_t>(offset);
  while (size > 0) {
    ssize_t n = sendfile(fd_, fd, &position, std::min<uint64_t>(size, kFilePiece));
    if (n > 0) {
      Progress();
      size -= static_cast<uint64_t>(n);
      co_await ShareLoop(static_cast<size_t>(n));
    } else if (n == 0) {
      co_return Fail(Code::kDataLoss, "the file became shorter while it was sent");
    } else if (errno == EAGAIN) {
      CO_TRY(co_await WaitWritable());
    } else if (errno != EINTR) {
      co_return FailErrno("sending a file");
    }
  }
  co_return Status();
}

Task<void> SocketStream::ShutdownWrite() {
  if (fd_ >= 0) shutdown(fd_, SHUT_WR);
  co_return;
}

void SocketStream::Cancel() {
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void SocketStream::Close(bool reset) {
  if (fd_ < 0) return;
  if (reset) {
    linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  fd_ = -1;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

std::string SocketStream::PeerAddress() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    in6_addr& ip = reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ip)) {
      inet_ntop(AF_INET, ip.s6_addr + 12, text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &ip, text, sizeof(text));
    }
  } else {
    return "unix";
  }
  return text;
}

Result<std::unique_ptr<Stream>> MakeSocketStream(asio::any_io_executor executor, UniqueFd socket) {
  auto stream = std::make_unique<SocketStream>(std::move(executor));
  TRY(stream->Open(std::move(socket)));
  return stream;
}

}  // namespace caisson::http
