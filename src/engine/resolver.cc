#include "engine/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include <boost/json.hpp>
#include <map>

#include "base/file.h"
#include "base/shares.h"
#include "base/text.h"
#include "engine/dns_message.h"
#include "engine/dns_stream.h"
#include "engine/egress.h"
#include "engine/event_loop.h"
#include "engine/protocol.h"

namespace caisson::engine {
namespace {

using Clock = std::chrono::steady_clock;

// What strangers can make this process hold.
constexpr size_t kMaxLookups = 2048;
constexpr size_t kMaxConnections = 512;
constexpr size_t kMaxBuckets = 65'536;
constexpr size_t kMaxMessage = 65'535;
constexpr int kDatagramsAtOnce = 64;

constexpr auto kAttemptTimeout = std::chrono::seconds(2);
constexpr int kAttempts = 3;
constexpr auto kIdleTimeout = std::chrono::seconds(10);
constexpr auto kTick = std::chrono::milliseconds(500);

uint16_t RandomU16() {
  uint16_t value = 0;
  (void)!getrandom(&value, sizeof value, 0);
  return value;
}

// So many per second, and as many at once.
struct Bucket {
  double tokens = 0;
  Clock::time_point at;
};

class Resolver {
 public:
  Resolver(const ResolverSettings& settings, EventLoop& loop, int engine)
      : settings_(settings), loop_(loop), engine_(engine) {}

  Status Start(const ResolverSockets& sockets);
  void Run();

 private:
  struct Client {  // who asked, and how to answer
    bool filtered = false;
    uint32_t sandbox = 0;
    int udp = -1;  // the socket it came by, or -1
    sockaddr_in from{};
    uint64_t connection = 0;  // else the connection
  };
  struct Lookup {
    Client client;
    DnsQuery query;
    uint16_t id = 0;  // ours
    int attempt = 0;
    UniqueFd udp;  // to the nameserver: one socket, hence one random port, per attempt
    std::unique_ptr<DnsStream> tcp;
    Clock::time_point deadline;
    std::string answer;  // waits until its addresses are admitted
  };
  struct Connection {
    std::unique_ptr<DnsStream> stream;
    bool filtered = false;
    uint32_t sandbox = 0;
    bool busy = false;  // one question at a time
    Clock::time_point deadline;
  };
  using Number = uint64_t;

  void OnDatagrams(int fd, bool filtered);
  void OnAccept(int fd, bool filtered);
  void OnConnection(Number number);
  void WatchConnection(Number number);
  void CloseConnection(Number number);

  bool TakeToken(uint32_t sandbox);
  void OnQuery(Client client, std::string_view message);
  void Ask(Number number);
  Status Send(Number number, const Nameserver& server);
  void OnUpstream(Number number);
  void WatchUpstream(Number number);
  void OnAnswer(Number number, std::string message, const DnsAnswer& answer);
  void Reply(const Client& client, const DnsQuery& query, std::string message);
  void Finish(Number number, std::string message);
  void CloseUpstream(Lookup& lookup);

  bool TakeFromEngine();  // one message; false if there is none
  void OnEngine(const Message& message);
  bool Tell(Message message);
  void Expire();

  const ResolverSettings& settings_;
  EventLoop& loop_;
  int engine_;
  bool engine_gone_ = false;
  Number next_ = 1;
  std::map<Number, Lookup> lookups_;
  std::map<Number, Connection> connections_;
  Shares<uint32_t> lookup_shares_{kMaxLookups},
      connection_shares_{kMaxConnections};  // of sandboxes
  std::map<uint32_t, Bucket> buckets_;
  std::map<uint32_t, EgressPolicy> policies_;  // of the filtered service
};

Status Resolver::Start(const ResolverSockets& sockets) {
  for (bool filtered : {false, true}) {
    int udp = (filtered ? sockets.filtered_udp : sockets.open_udp).get();
    int tcp = (filtered ? sockets.filtered_tcp : sockets.open_tcp).get();
    TRY(loop_.Watch(udp, EPOLLIN, [=, this] { OnDatagrams(udp, filtered); }));
    TRY(loop_.Watch(tcp, EPOLLIN, [=, this] { OnAccept(tcp, filtered); }));
  }
  TRY(SetNonBlocking(engine_));
  return loop_.Watch(engine_, EPOLLIN, [this] { TakeFromEngine(); });
}

void Resolver::Run() {
  auto next = Clock::now() + kTick;
  while (!engine_gone_) {
    bool idle = lookups_.empty() && connections_.empty();
    loop_.RunOnce(idle ? Clock::now() + std::chrono::minutes(1) : next);
    if (Clock::now() < next) continue;
    Expire();
    next = Clock::now() + kTick;
  }
}

// ---- clients ----------------------------------------------------------------

void Resolver::OnDatagrams(int fd, bool filtered) {
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    char buffer[4096];
    Client client{.filtered = filtered, .udp = fd};
    socklen_t size = sizeof client.from;
    ssize_t n = recvfrom(fd, buffer, sizeof buffer, MSG_DONTWAIT,
                         reinterpret_cast<sockaddr*>(&client.from), &size);
    if (n < 0) return;
    client.sandbox = ntohl(client.from.sin_addr.s_addr);
    OnQuery(client, std::string_view(buffer, static_cast<size_t>(n)));
  }
}

void Resolver::OnAccept(int fd, bool filtered) {
  sockaddr_in from{};
  socklen_t size = sizeof from;
  UniqueFd accepted(
      accept4(fd, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) return;
  uint32_t sandbox = ntohl(from.sin_addr.s_addr);
  if (!connection_shares_.Take(sandbox)) return;
  Number number = next_++;
  connections_[number] = {.stream = std::make_unique<DnsStream>(std::move(accepted)),
                          .filtered = filtered,
                          .sandbox = sandbox,
                          .deadline = Clock::now() + kIdleTimeout};
  WatchConnection(number);
}

void Resolver::WatchConnection(Number number) {
  auto it = connections_.find(number);
  if (it == connections_.end()) return;
  Connection& connection = it->second;
  if (connection.stream->ended()) return CloseConnection(number);
  // While it waits for its answer nothing more is read from it.
  uint32_t events = connection.stream->wants_to_write() ? EPOLLOUT : connection.busy ? 0u : EPOLLIN;
  if (!loop_.Watch(connection.stream->fd(), events, [this, number] { OnConnection(number); }))
    CloseConnection(number);
}

void Resolver::OnConnection(Number number) {
  Connection& connection = connections_.at(number);
  connection.stream->Flush();
  // Also a hang-up comes here: while busy nobody reads it, so it ends the connection.
  if (connection.busy) return CloseConnection(number);
  auto message = connection.stream->Read();
  if (message) {
    connection.busy = true;
    connection.deadline = Clock::now() + kIdleTimeout;
    OnQuery({.filtered = connection.filtered, .sandbox = connection.sandbox, .connection = number},
            *message);
  }
  WatchConnection(number);
}

void Resolver::CloseConnection(Number number) {
  auto it = connections_.find(number);
  if (it == connections_.end()) return;
  loop_.Unwatch(it->second.stream->fd());
  connection_shares_.GiveBack(it->second.sandbox);
  connections_.erase(it);
}

bool Resolver::TakeToken(uint32_t sandbox) {
  auto rate = static_cast<double>(settings_.queries_per_second);
  if (rate <= 0) return true;
  auto now = Clock::now();
  auto [it, fresh] = buckets_.try_emplace(sandbox, Bucket{rate, now});
  Bucket& bucket = it->second;
  std::chrono::duration<double> passed = now - bucket.at;
  bucket.tokens = std::min(rate, bucket.tokens + passed.count() * rate);
  bucket.at = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  if (buckets_.size() > kMaxBuckets) buckets_.clear();
  return true;
}

void Resolver::OnQuery(Client client, std::string_view message) {
  auto query = ParseDnsQuery(message);
  if (!query) {
    if (client.udp < 0) CloseConnection(client.connection);
    return;
  }
  auto refuse = [&](uint8_t code) { Reply(client, *query, BuildDnsError(*query, code)); };
  if (!TakeToken(client.sandbox) || !lookup_shares_.MayTake(client.sandbox))
    return refuse(kDnsRefused);
  if (client.filtered) {
    auto policy = policies_.find(client.sandbox);
    // Its rules may lie unread beside its question.
    if (policy == policies_.end()) {
      while (TakeFromEngine()) {
      }
      policy = policies_.find(client.sandbox);
    }
    // SECURITY: who is not known yet (its rules hold in the kernel before it is told to us) gets
    // nothing, in a way that makes it ask again.
    if (policy == policies_.end()) return refuse(kDnsServerFailure);
    if (!policy->second.AllowsName(query->question.name)) {
      Tell({{{"op", "refused"},
             {"sandbox", client.sandbox},
             {"name", query->question.name},
             {"type", query->question.type}},
            "",
            {}});
      return refuse(kDnsNameError);
    }
  }
  (void)lookup_shares_.Take(client.sandbox);
  Number number = next_++;
  Lookup& lookup = lookups_[number];
  lookup.client = client;
  lookup.query = *std::move(query);
  Ask(number);
}

void Resolver::Reply(const Client& client, const DnsQuery& query, std::string message) {
  if (client.udp >= 0) {
    message = RelayDnsAnswer(std::move(message), query, query.max_size);
    (void)!sendto(client.udp, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&client.from), sizeof client.from);
    return;
  }
  auto it = connections_.find(client.connection);
  if (it == connections_.end()) return;
  it->second.busy = false;
  it->second.deadline = Clock::now() + kIdleTimeout;
  it->second.stream->Write(RelayDnsAnswer(std::move(message), query, kMaxMessage));
  WatchConnection(client.connection);
}

// ---- nameservers ------------------------------------------------------------

// The next attempt, or the end of them.
void Resolver::Ask(Number number) {
  Lookup& lookup = lookups_.at(number);
  const auto& servers = settings_.nameservers;
  while (!servers.empty() && lookup.attempt < kAttempts) {
    const Nameserver& server = servers[static_cast<size_t>(lookup.attempt++) % servers.size()];
    if (Send(number, server)) return;
  }
  Finish(number, BuildDnsError(lookup.query, kDnsServerFailure));
}

Status Resolver::Send(Number number, const Nameserver& server) {
  Lookup& lookup = lookups_.at(number);
  CloseUpstream(lookup);
  bool tcp = lookup.client.udp < 0;  // it asks by TCP because the answer is long
  lookup.id = RandomU16();
  lookup.deadline = Clock::now() + kAttemptTimeout;
  std::string message = BuildDnsQuery(lookup.query, lookup.id);
  UniqueFd fd(socket(server.address.ss_family,
                     (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return FailErrno("making a socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&server.address), server.size) != 0 &&
      errno != EINPROGRESS)
    return FailErrno("connecting to a nameserver");
  if (tcp) {
    lookup.tcp = std::make_unique<DnsStream>(std::move(fd));
    lookup.tcp->Write(message);
  } else {
    if (send(fd.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
      return FailErrno("asking a nameserver");
    lookup.udp = std::move(fd);
  }
  WatchUpstream(number);
  return {};
}

void Resolver::WatchUpstream(Number number) {
  Lookup& lookup = lookups_.at(number);
  int fd = lookup.tcp ? lookup.tcp->fd() : lookup.udp.get();
  bool writing = lookup.tcp && lookup.tcp->wants_to_write();
  (void)loop_.Watch(fd, writing ? EPOLLOUT : EPOLLIN, [this, number] { OnUpstream(number); });
}

void Resolver::OnUpstream(Number number) {
  Lookup& lookup = lookups_.at(number);
  std::optional<std::string> message;
  if (lookup.tcp) {
    lookup.tcp->Flush();
    if (lookup.tcp->wants_to_write()) return;
    message = lookup.tcp->Read();
    if (!message && lookup.tcp->ended()) return Ask(number);
    if (!message) return WatchUpstream(number);
  } else {
    message.emplace(kMaxMessage, '\0');
    ssize_t n = recv(lookup.udp.get(), message->data(), message->size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) return Ask(number);  // nobody listens there
    message->resize(static_cast<size_t>(n));
  }
  auto answer = ParseDnsAnswer(*message, lookup.query, lookup.id);
  if (!answer && lookup.tcp) return Ask(number);
  if (!answer) return;  // not what we asked for; the right one may still come
  if (answer->code == kDnsServerFailure && lookup.attempt < kAttempts &&
      settings_.nameservers.size() > 1)
    return Ask(number);
  OnAnswer(number, *std::move(message), *answer);
}

void Resolver::OnAnswer(Number number, std::string message, const DnsAnswer& answer) {
  Lookup& lookup = lookups_.at(number);
  CloseUpstream(lookup);
  if (!lookup.client.filtered || answer.addresses.empty())
    return Finish(number, std::move(message));
  json::array addresses;
  for (const DnsAddress& one : answer.addresses)
    addresses.push_back(json::array{one.address, one.ttl});
  lookup.answer = std::move(message);
  lookup.deadline = Clock::now() + kAttemptTimeout;
  lookup.attempt = kAttempts;
  // The answer goes out when the firewall knows its addresses, so that the first packet passes.
  if (!Tell({{{"op", "admit"},
              {"call", number},
              {"sandbox", lookup.client.sandbox},
              {"name", lookup.query.question.name},
              {"addresses", std::move(addresses)}},
             "",
             {}}))
    Finish(number, BuildDnsError(lookup.query, kDnsServerFailure));
}

void Resolver::CloseUpstream(Lookup& lookup) {
  int fd = lookup.tcp ? lookup.tcp->fd() : lookup.udp.get();
  if (fd >= 0) loop_.Unwatch(fd);
  lookup.tcp.reset();
  lookup.udp.Reset();
}

void Resolver::Finish(Number number, std::string message) {
  auto node = lookups_.extract(number);
  Lookup& lookup = node.mapped();
  CloseUpstream(lookup);
  lookup_shares_.GiveBack(lookup.client.sandbox);
  Reply(lookup.client, lookup.query, std::move(message));
}

void Resolver::Expire() {
  auto now = Clock::now();
  std::vector<Number> late;
  for (const auto& [number, lookup] : lookups_)
    if (lookup.deadline <= now) late.push_back(number);
  for (Number number : late) Ask(number);
  late.clear();
  for (const auto& [number, connection] : connections_)
    if (connection.deadline <= now) late.push_back(number);
  for (Number number : late) CloseConnection(number);
}

// ---- the engine -------------------------------------------------------------

bool Resolver::Tell(Message message) { return engine::Send(engine_, message).has_value(); }

bool Resolver::TakeFromEngine() {
  auto message = Receive(engine_);
  if (!message) {
    engine_gone_ = message.error().sys_errno() != EAGAIN;
    return false;
  }
  OnEngine(*message);
  return true;
}

void Resolver::OnEngine(const Message& message) {
  auto op = GetString(message.head, "op");
  if (!op) return;
  if (*op == "admitted") {
    auto call = GetInt(message.head, "call");
    auto ok = GetInt(message.head, "ok");
    auto it = lookups_.find(static_cast<Number>(call.value_or(0)));
    if (it == lookups_.end() || it->second.answer.empty()) return;
    Finish(it->first, ok.value_or(0) ? std::move(it->second.answer)
                                     : BuildDnsError(it->second.query, kDnsServerFailure));
    return;
  }
  auto sandbox = GetInt(message.head, "sandbox");
  if (!sandbox) return;
  auto address = static_cast<uint32_t>(*sandbox);
  policies_.erase(address);
  buckets_.erase(address);
  const json::value* rules = message.head.if_contains("egress");
  if (*op != "policy" || !rules) return;
  if (auto egress = DecodeEgress(*rules)) policies_.emplace(address, EgressPolicy(*egress));
}

}  // namespace

Result<Nameserver> ParseNameserver(std::string_view text) {
  std::string host(Trim(text));
  int port = 53;
  size_t colon = host.rfind(':');
  bool bracketed = host.starts_with('[');
  // One colon ends an IPv4 address; an IPv6 address with a port has brackets.
  if (colon != std::string::npos &&
      (bracketed ? colon > 0 && host[colon - 1] == ']' : host.find(':') == colon)) {
    port = ParseInt<int>(std::string_view(host).substr(colon + 1)).value_or(0);
    host.resize(colon);
  }
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Nameserver server;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&server.address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&server.address);
  auto network_port = htons(static_cast<uint16_t>(port));
  if (port > 0 && port < 65536 && inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = network_port;
    server.size = sizeof *v4;
  } else if (port > 0 && port < 65536 && inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = network_port;
    server.size = sizeof *v6;
  } else {
    return Fail(Code::kInvalidArgument,
                "setting dns: '{}' is not the address of a nameserver (IP, or IP:PORT)", text);
  }
  return server;
}

Result<std::vector<Nameserver>> FindNameservers(const std::string& setting,
                                                const std::string& resolv_conf) {
  std::vector<Nameserver> servers;
  if (!setting.empty()) {
    for (std::string_view one : Split(setting, ',')) {
      TRY_ASSIGN(Nameserver server, ParseNameserver(one));
      servers.push_back(server);
    }
    return servers;
  }
  auto text = ReadFile(resolv_conf);
  if (!text) return servers;
  for (std::string_view line : Split(*text, '\n')) {
    line = Trim(line);
    if (!line.starts_with("nameserver")) continue;
    if (auto server = ParseNameserver(line.substr(10))) servers.push_back(*server);
  }
  return servers;
}

int RunResolver(const ResolverSettings& settings, const ResolverSockets& sockets, int engine) {
  auto loop = EventLoop::Create();
  if (!loop) return 1;
  Resolver resolver(settings, **loop, engine);
  if (!resolver.Start(sockets)) return 1;
  resolver.Run();
  return 0;
}

}  // namespace caisson::engine
