#include "engine/relay.h"

#include <arpa/inet.h>
#include <linux/netfilter_ipv4.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "base/fd.h"
#include "base/shares.h"
#include "base/text.h"
#include "engine/event_loop.h"
#include "engine/protocol.h"

namespace caisson::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxConnections = 16'384;
constexpr size_t kMaxBuffered = 64 << 10;  // in each direction
constexpr auto kHandshakeTimeout = std::chrono::seconds(20);
constexpr auto kTick = std::chrono::seconds(1);
constexpr char kVersion = 5, kNoLogin = 0, kPasswordLogin = 2;

class Relay {
 public:
  Relay(const ProxySettings& proxy, const Cidr& sandboxes, EventLoop& loop, int listener)
      : proxy_(proxy), sandboxes_(sandboxes), loop_(loop), listener_(listener) {}

  Status Run(int engine);

 private:
  using Number = uint64_t;
  enum class State { kMethod, kLogin, kConnect, kOpen };
  // One side of a connection: what it sent and the other has not taken yet.
  struct Side {
    UniqueFd fd;
    std::string pending;
    bool ended = false;  // will send no more
    bool told = false;   // the other side knows that
  };
  struct Connection {
    Side sandbox, proxy;
    uint32_t who = 0;  // the sandbox's address
    sockaddr_in destination{};
    State state = State::kMethod;
    Clock::time_point deadline;
  };

  void OnAccept();
  void OnReady(Number number);
  // False: it is over.
  bool Advance(Connection& connection);
  bool Shake(Connection& connection);
  bool Read(Side& side);
  bool Write(Side& from, Side& to);
  void Watch(Number number);
  void Close(Number number);
  void Expire();
  // False: the engine is gone.
  bool OnEngine(int engine);

  const ProxySettings& proxy_;
  Cidr sandboxes_;
  EventLoop& loop_;
  int listener_;
  Number next_ = 1;
  std::map<Number, Connection> connections_;
  Shares<uint32_t> shares_{kMaxConnections};
};

// Where a redirected connection was going; nothing if it was not redirected.
std::optional<sockaddr_in> OriginalDestination(int fd) {
  sockaddr_in original{}, own{};
  socklen_t size = sizeof original, own_size = sizeof own;
  if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &original, &size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0)
    return std::nullopt;
  bool same = original.sin_addr.s_addr == own.sin_addr.s_addr && original.sin_port == own.sin_port;
  return same ? std::nullopt : std::optional(original);
}

Status Relay::Run(int engine) {
  bool gone = false;
  TRY(loop_.Watch(listener_, EPOLLIN, [this] { OnAccept(); }));
  TRY(loop_.Watch(engine, EPOLLIN, [&] { gone = !OnEngine(engine); }));
  auto next = Clock::now() + kTick;
  while (!gone) {
    loop_.RunOnce(next);
    if (Clock::now() < next) continue;
    Expire();
    next = Clock::now() + kTick;
  }
  return {};
}

bool Relay::OnEngine(int engine) {
  auto message = Receive(engine);
  if (!message) return false;
  auto sandbox = GetInt(message->head, "sandbox");
  if (!sandbox) return true;
  // SECURITY: whoever has this address next must not get what was meant for the one before.
  std::vector<Number> its;
  for (const auto& [number, connection] : connections_)
    if (connection.who == *sandbox) its.push_back(number);
  for (Number number : its) Close(number);
  return true;
}

void Relay::OnAccept() {
  sockaddr_in from{};
  socklen_t size = sizeof from;
  UniqueFd accepted(
      accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  uint32_t who = ntohl(from.sin_addr.s_addr);
  if (!accepted || !shares_.MayTake(who)) return;
  // SECURITY: nobody else may use the proxy through us, and no sandbox may call this port itself.
  auto destination = OriginalDestination(accepted.get());
  if (!sandboxes_.Contains(who) || !destination) return;
  UniqueFd out(socket(proxy_.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out ||
      (connect(out.get(), reinterpret_cast<const sockaddr*>(&proxy_.address), proxy_.size) != 0 &&
       errno != EINPROGRESS))
    return;
  for (int fd : {accepted.get(), out.get()}) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  Number number = next_++;
  Connection& connection = connections_[number];
  connection.sandbox.fd = std::move(accepted);
  connection.proxy.fd = std::move(out);
  connection.destination = *destination;
  connection.who = who;
  (void)shares_.Take(who);
  connection.deadline = Clock::now() + kHandshakeTimeout;
  // What we say to the proxy counts as sent by the sandbox; its own words wait until it is open.
  connection.sandbox.pending = SocksGreeting(proxy_);
  Watch(number);
}

void Relay::OnReady(Number number) {
  if (Advance(connections_.at(number)))
    Watch(number);
  else
    Close(number);
}

bool Relay::Advance(Connection& connection) {
  if (!Read(connection.proxy)) return false;
  if (connection.state != State::kOpen && !Shake(connection)) return false;
  bool open = connection.state == State::kOpen;
  if (open && !Read(connection.sandbox)) return false;
  if (!Write(connection.sandbox, connection.proxy)) return false;
  if (!open) return !connection.proxy.ended;
  if (!Write(connection.proxy, connection.sandbox)) return false;
  return !(connection.sandbox.told && connection.proxy.told);
}

// Takes the proxy's answers until the way is open.
bool Relay::Shake(Connection& connection) {
  std::string& heard = connection.proxy.pending;
  std::string& say = connection.sandbox.pending;
  if (connection.state == State::kMethod && heard.size() >= 2) {
    bool login = heard[1] == kPasswordLogin && !proxy_.username.empty();
    if (heard[0] != kVersion || (heard[1] != kNoLogin && !login)) return false;
    heard.erase(0, 2);
    connection.state = login ? State::kLogin : State::kConnect;
    say += login ? SocksLogin(proxy_) : SocksConnect(connection.destination);
  }
  if (connection.state == State::kLogin && heard.size() >= 2) {
    if (heard[1] != 0) return false;
    heard.erase(0, 2);
    connection.state = State::kConnect;
    say += SocksConnect(connection.destination);
  }
  if (connection.state == State::kConnect && heard.size() >= 5) {
    size_t size = SocksAnswerSize(heard);
    if (heard[0] != kVersion || heard[1] != 0 || size == 0) return false;
    if (heard.size() < size) return true;
    heard.erase(0, size);
    connection.state = State::kOpen;
  }
  return true;
}

// False when the connection broke.
bool Relay::Read(Side& side) {
  while (!side.ended && side.pending.size() < kMaxBuffered) {
    char buffer[16 << 10];
    ssize_t n = recv(side.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0)
      side.pending.append(buffer, static_cast<size_t>(n));
    else if (n == 0)
      side.ended = true;
    else if (errno != EINTR)
      return errno == EAGAIN || errno == ENOTCONN;
  }
  return true;
}

bool Relay::Write(Side& from, Side& to) {
  while (!from.pending.empty()) {
    ssize_t n =
        send(to.fd.get(), from.pending.data(), from.pending.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
      from.pending.erase(0, static_cast<size_t>(n));
    else if (errno != EINTR)
      return errno == EAGAIN || errno == ENOTCONN;
  }
  if (from.ended && !from.told) {
    shutdown(to.fd.get(), SHUT_WR);
    from.told = true;
  }
  return true;
}

void Relay::Watch(Number number) {
  Connection& connection = connections_.at(number);
  auto events = [](const Side& side, const Side& other, bool reads) {
    bool room = reads && !side.ended && side.pending.size() < kMaxBuffered;
    return static_cast<uint32_t>((room ? EPOLLIN : 0) | (other.pending.empty() ? 0 : EPOLLOUT));
  };
  bool open = connection.state == State::kOpen;
  uint32_t sandbox = open ? events(connection.sandbox, connection.proxy, true) : 0;
  uint32_t proxy = events(connection.proxy, connection.sandbox, true);
  for (auto [fd, wanted] : {std::pair(connection.sandbox.fd.get(), sandbox),
                            std::pair(connection.proxy.fd.get(), proxy)}) {
    // Not watched at all when there is nothing to do: a hang-up would be reported without end.
    if (wanted == 0)
      loop_.Unwatch(fd);
    else if (!loop_.Watch(fd, wanted, [this, number] { OnReady(number); }))
      return Close(number);
  }
}

void Relay::Close(Number number) {
  auto it = connections_.find(number);
  // A reset tells the program inside that this was no proper end.
  if (it->second.state != State::kOpen || !it->second.proxy.told) {
    linger hard{.l_onoff = 1, .l_linger = 0};
    setsockopt(it->second.sandbox.fd.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  loop_.Unwatch(it->second.sandbox.fd.get());
  loop_.Unwatch(it->second.proxy.fd.get());
  shares_.GiveBack(it->second.who);
  connections_.erase(it);
}

void Relay::Expire() {
  std::vector<Number> late;
  for (const auto& [number, connection] : connections_)
    if (connection.state != State::kOpen && connection.deadline <= Clock::now())
      late.push_back(number);
  for (Number number : late) Close(number);
}

}  // namespace

Result<ProxySettings> ParseProxy(const std::string& setting) {
  auto bad = Fail(Code::kInvalidArgument,
                  "setting egress_proxy: it must be HOST:PORT or USER:PASSWORD@HOST:PORT");
  ProxySettings proxy;
  std::string_view rest = setting;
  if (size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view login = rest.substr(0, at);
    size_t colon = login.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon > 255 ||
        login.size() - colon - 1 > 255)
      return bad;
    proxy.username = login.substr(0, colon);
    proxy.password = login.substr(colon + 1);
    rest.remove_prefix(at + 1);
  }
  size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return bad;
  std::string host(rest.substr(0, colon)), port(rest.substr(colon + 1));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  auto number = ParseInt<int>(port);
  if (host.empty() || !number || *number < 1 || *number > 65535) return bad;
  addrinfo hints{.ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0 || !found)
    return Fail(Code::kUnavailable, "setting egress_proxy: the host '{}' cannot be found", host);
  memcpy(&proxy.address, found->ai_addr, found->ai_addrlen);
  proxy.size = found->ai_addrlen;
  freeaddrinfo(found);
  return proxy;
}

std::string SocksGreeting(const ProxySettings& proxy) {
  if (proxy.username.empty()) return {kVersion, 1, kNoLogin};
  return {kVersion, 2, kNoLogin, kPasswordLogin};
}

std::string SocksLogin(const ProxySettings& proxy) {
  std::string out(1, '\1');
  for (const std::string& part : {proxy.username, proxy.password}) {
    out += static_cast<char>(part.size());
    out += part;
  }
  return out;
}

std::string SocksConnect(const sockaddr_in& destination) {
  std::string out{kVersion, 1, 0, 1};
  out.append(reinterpret_cast<const char*>(&destination.sin_addr), 4);
  out.append(reinterpret_cast<const char*>(&destination.sin_port), 2);
  return out;
}

size_t SocksAnswerSize(std::string_view answer) {
  if (answer.size() < 5) return 0;
  switch (answer[3]) {
    case 1:
      return 4 + 4 + 2;
    case 3:
      return 4 + 1 + static_cast<unsigned char>(answer[4]) + 2;
    case 4:
      return 4 + 16 + 2;
    default:
      return 0;
  }
}

int RunRelay(const ProxySettings& proxy, const Cidr& sandboxes, int listener, int engine) {
  auto loop = EventLoop::Create();
  if (!loop) return 1;
  return Relay(proxy, sandboxes, **loop, listener).Run(engine) ? 0 : 1;
}

}  // namespace caisson::engine
