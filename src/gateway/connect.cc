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

Task<Status> ConnectSocket(int fd, sockaddr_in6 peer, std::chrono::milliseconds timeout) {
  int port = ntohs(peer.sin6_port);
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

Task<Result<UniqueFd>> ConnectTo(Directory& directory, std::string sandbox_id, const char* address,
                                 uint16_t port, std::chrono::milliseconds timeout) {
  CO_TRY_ASSIGN(UniqueFd socket,
                co_await WithDeadline(timeout, "reaching the sandbox", directory.Dial(sandbox_id)));
  CO_TRY(SetNonBlocking(socket.get()));
  // SECURITY: looked up right before the connect, not when the request came: a request that waits
  // for a closed port must not get in when the server begins to listen there.
  const sandbox::Route* route = directory.FindRoute(sandbox_id);
  if (route && route->private_ports.contains(port))
    co_return tl::unexpected(ErrnoError(fmt::format("connecting to port {}", port), ECONNREFUSED));
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  peer.sin6_port = htons(port);
  inet_pton(AF_INET6, address, &peer.sin6_addr);
  CO_TRY(co_await ConnectSocket(socket.get(), peer, timeout));
  co_return std::move(socket);
}

}  // namespace

Task<Result<UniqueFd>> ConnectLoopback(Directory& directory, std::string sandbox_id, uint16_t port,
                                       std::chrono::milliseconds timeout) {
  auto four = co_await ConnectTo(directory, sandbox_id, "::ffff:127.0.0.1", port, timeout);
  if (four || four.error().sys_errno() != ECONNREFUSED) co_return four;
  // A new socket: one that has tried IPv4 cannot speak IPv6 any more.
  auto six = co_await ConnectTo(directory, sandbox_id, "::1", port, timeout);
  if (six) co_return six;
  // A sandbox without IPv6 says "unreachable", which would hide that the port is closed.
  co_return four;
}

}  // namespace caisson::gateway
