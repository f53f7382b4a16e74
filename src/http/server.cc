#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <list>
#include <unordered_map>

#include "base/log.h"
#include "base/text.h"
#include "http/connection.h"

namespace caisson::http {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptBatch = 64;
constexpr std::chrono::milliseconds kAcceptBackoff{100};
constexpr std::chrono::seconds kWarnEvery{10};

// "127.0.0.1:8000" or "[::1]:8000".
Result<sockaddr_storage> ParseAddress(std::string_view text) {
  size_t colon = text.rfind(':');
  auto port =
      colon == std::string_view::npos ? std::nullopt : ParseInt<uint16_t>(text.substr(colon + 1));
  std::string host(text.substr(0, port ? colon : 0));
  if (host == "localhost") host = "127.0.0.1";
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed && inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr)) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(*port);
  } else if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr)) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(*port);
  } else {
    return Fail(Code::kInvalidArgument,
                "\"{}\" is not an address to listen on; expected IP:PORT, e.g. 127.0.0.1:8000 or "
                "[::1]:8000",
                text);
  }
  return address;
}

// Accepted sockets inherit these. Keep-alive probes notice peers that vanished without a word.
void SetSocketOptions(int fd) {
  auto set = [fd](int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

// SECURITY: names of Unix sockets are for everybody on the machine; ours are for this process only.
bool IsStranger(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX) return false;
  ucred peer{};
  size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid != getpid();
}

// Whose connection it is, as far as they are counted: a part of its address; "" = this machine's.
std::string PeerOf(const sockaddr_storage& from) {
  constexpr size_t kNetworkBytes = 8;  // of IPv6: one machine has all addresses of such a network
  if (from.ss_family == AF_INET) {
    const in_addr& address = reinterpret_cast<const sockaddr_in&>(from).sin_addr;
    if (ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET) return "";
    return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
  }
  if (from.ss_family != AF_INET6) return "";
  const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&address)) return "";
  const char* bytes = reinterpret_cast<const char*>(address.s6_addr);
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return std::string(bytes, kNetworkBytes);
  return bytes[12] == IN_LOOPBACKNET ? "" : std::string(bytes + 12, sizeof(in_addr));
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::any_io_executor executor, ServerOptions options, Handler handler,
       StreamFactory factory)
      : executor_(executor),
        options_(options),
        handler_(std::move(handler)),
        factory_(std::move(factory)),
        acceptors_(executor),
        connections_(executor) {}

  Status Adopt(UniqueFd socket) {
    TRY(SetNonBlocking(socket.get()));
    SetSocketOptions(socket.get());
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    if (port_ == 0 && address.ss_family != AF_UNIX)
      port_ = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);  // same place in IPv6
    auto& listener = listeners_.emplace_back(executor_);
    boost::system::error_code ec;
    listener.assign(socket.get(), ec);
    if (ec) return tl::unexpected(FromEc(ec, "watching a listening socket"));
    socket.Release();
    acceptors_.Spawn("accept", Accept(shared_from_this(), listener));
    return {};
  }

  Task<void> Stop(std::chrono::milliseconds grace) {
    auto self = shared_from_this();
    stopping_ = true;
    co_await acceptors_.Stop();
    listeners_.clear();
    // Closing may end a connection at once and change the list.
    for (Connection* connection : std::list(open_)) connection->CloseIfIdle();
    if (co_await connections_.Join(grace)) co_return;
    if (!co_await connections_.Stop())
      LogWarn("connections did not end when told to", {{"count", connections_.size()}});
  }

  // The way out without waiting. The ports are free at once: whoever drops a server may open the
  // next one in its place.
  void Drop() {
    stopping_ = true;
    boost::system::error_code ignored;
    for (Listener& listener : listeners_) listener.close(ignored);
    acceptors_.Cancel();
    connections_.Cancel();
  }

  uint16_t port() const { return port_; }
  size_t connections() const { return connections_.size(); }

 private:
  using Listener = asio::posix::stream_descriptor;

  static Task<void> Accept(std::shared_ptr<Impl> self, Listener& listener) {
    co_await asio::this_coro::throw_if_cancelled(false);
    while (!self->stopping_) {
      auto [ec] = co_await listener.async_wait(Listener::wait_read, kAwait);
      if (ec || self->stopping_) co_return;
      if (self->AcceptSome(listener.native_handle())) continue;
      // Out of descriptors or memory: the connection stays in the queue and would wake us at once.
      co_await SleepFor(kAcceptBackoff);
    }
  }

  // False if the machine is short of something and accepting again at once makes no sense.
  bool AcceptSome(int listener) {
    for (int i = 0; i < kAcceptBatch; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof(from);
      UniqueFd socket(accept4(listener, reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        int error = errno;
        if (error == EAGAIN) return true;
        if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) continue;
        Warn("cannot accept connections", strerror(error));
        return false;
      }
      if (IsStranger(socket.get())) continue;  // closes it
      if (connections_.size() >= options_.max_connections) {
        Warn("too many connections", fmt::format("limit {}", options_.max_connections));
        continue;  // closes it
      }
      std::string peer = options_.max_per_peer > 0 ? PeerOf(from) : "";
      if (!peer.empty() && ++peers_[peer] > options_.max_per_peer) {
        Leave(peer);
        Warn("too many connections of one peer", fmt::format("limit {}", options_.max_per_peer));
        continue;  // closes it
      }
      connections_.Spawn("connection", Serve(shared_from_this(), std::move(socket), peer));
    }
    return true;
  }

  void Leave(const std::string& peer) {
    auto it = peers_.find(peer);
    if (it != peers_.end() && --it->second == 0) peers_.erase(it);
  }

  void Warn(std::string_view what, std::string_view why) {
    auto now = std::chrono::steady_clock::now();
    if (now < next_warning_) return;
    next_warning_ = now + kWarnEvery;
    LogWarn(what, {{"why", why}});
  }

  static Task<void> Serve(std::shared_ptr<Impl> self, UniqueFd socket, std::string peer) {
    struct Leaving {
      ~Leaving() { impl.Leave(peer); }
      Impl& impl;
      const std::string& peer;
    } leaving{*self, peer};
    try {
      co_await ServeStream(*self, std::move(socket));
    } catch (const boost::system::system_error& e) {
      // Canceled between two operations; closing was all that was left to do.
      if (e.code() != asio::error::operation_aborted) throw;
    }
  }

  static Task<void> ServeStream(Impl& self, UniqueFd socket) {
    Result<std::unique_ptr<Stream>> stream =
        self.factory_ ? co_await self.factory_(self.executor_, std::move(socket))
                      : MakeSocketStream(self.executor_, std::move(socket));
    if (!stream) {
      LogDebug("a connection failed at its start", {{"error", stream.error().message()}});
      co_return;
    }
    Connection connection(std::move(*stream), self.options_, self.handler_, self.stopping_);
    Membership membership(self.open_, &connection);
    co_await connection.Run();
  }

  struct Membership {
    Membership(std::list<Connection*>& all, Connection* one)
        : list(all), at(all.insert(all.end(), one)) {}
    ~Membership() { list.erase(at); }
    std::list<Connection*>& list;
    std::list<Connection*>::iterator at;
  };

  asio::any_io_executor executor_;
  ServerOptions options_;
  Handler handler_;
  StreamFactory factory_;
  TaskGroup acceptors_;
  TaskGroup connections_;
  std::list<Listener> listeners_;
  std::list<Connection*> open_;
  std::unordered_map<std::string, size_t> peers_;  // how many connections each has
  std::chrono::steady_clock::time_point next_warning_;
  uint16_t port_ = 0;
  bool stopping_ = false;
};

Server::Server(asio::any_io_executor executor, ServerOptions options, Handler handler,
               StreamFactory factory)
    : impl_(std::make_shared<Impl>(std::move(executor), options, std::move(handler),
                                   std::move(factory))) {}

Server::~Server() { impl_->Drop(); }

Status Server::Listen(const std::string& address) {
  TRY_ASSIGN(sockaddr_storage where, ParseAddress(address));
  UniqueFd socket(::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return FailErrno("listening on {}", address);
  int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t size = where.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 ||
      listen(socket.get(), kBacklog) != 0)
    return FailErrno("listening on {}", address);
  return Adopt(std::move(socket));
}

Status Server::Adopt(UniqueFd listening_socket) {
  return impl_->Adopt(std::move(listening_socket));
}
uint16_t Server::port() const { return impl_->port(); }
size_t Server::connections() const { return impl_->connections(); }
Task<void> Server::Stop(std::chrono::milliseconds grace) { return impl_->Stop(grace); }

}  // namespace caisson::http
