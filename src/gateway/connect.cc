#include "gateway/connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace caisson::gateway {
namespace {

// Watches a descriptor that someone else owns.
class Watch {
 public:
  Watch(asio::any_io_executor executor, int fd) : descriptor_(std::move(executor), fd) {}
  ~Watch() { descriptor_.release(); }

  Task<Status> Writable() {
    auto [ec] = co_await descriptor_.async_wait(asio::posix::descriptor_base::wait_write, kAwait);
    if (ec) co_return tl::unexpected(FromEc(ec, "connecting"));
    co_return Status();
  }

 private:
  asio::posix::stream_descriptor descriptor_;
};

Task<Status> ConnectTo(int fd, in6_addr address, uint16_t port, std::chrono::milliseconds timeout) {
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  peer.sin6_port = htons(port);
  peer.sin6_addr = address;
  if (connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) == 0) co_return Status();
  if (errno != EINPROGRESS) co_return FailErrno("connecting to port {}", port);
  // On a loopback the answer is nearly always there already; then the loop is not needed.
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) == 0) {
    Watch watch(co_await asio::this_coro::executor, fd);
    CO_TRY(co_await WithDeadline(timeout, fmt::format("connecting to port {}", port),
                                 watch.Writable()));
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size)) error = errno;
  if (error)
    co_return tl::unexpected(ErrnoError(fmt::format("connecting to port {}", port), error));
  co_return Status();
}

}  // namespace

Task<Result<UniqueFd>> ConnectLoopback(UniqueFd socket, uint16_t port,
                                       std::chrono::milliseconds timeout) {
  CO_TRY(SetNonBlocking(socket.get()));
  in6_addr mapped{};  // ::ffff:127.0.0.1
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped);
  Status connected = co_await ConnectTo(socket.get(), mapped, port, timeout);
  // Linux lets a TCP socket whose connect() was refused try again.
  if (!connected && connected.error().sys_errno() == ECONNREFUSED) {
    Status second = co_await ConnectTo(socket.get(), in6addr_loopback, port, timeout);
    // A sandbox without IPv6 says "unreachable", which would hide that the port is closed.
    if (second) connected = second;
  }
  if (!connected) co_return tl::unexpected(std::move(connected).error());
  co_return std::move(socket);
}

}  // namespace caisson::gateway
