#include "engine/egress_guard.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "base/log.h"
#include "engine/net_process.h"
#include "engine/socket_owner.h"

namespace caisson::engine {
namespace {

// How long an address stays admitted after its name was resolved, whatever the name's owner says:
// long enough to connect, short enough to end.
constexpr int64_t kShortestAdmission = 60, kLongestAdmission = 3600;  // seconds
constexpr size_t kMaxAdmitted = 4096;                                 // of one sandbox
// The engine serves nobody while it looks for the process that tried something in vain. So it looks
// briefly, and no more than one part of its time in twenty.
constexpr auto kLongestLookup = std::chrono::milliseconds(2);
constexpr std::chrono::nanoseconds kMostLookupTime = std::chrono::milliseconds(10);
constexpr int kLookupShare = 20;
constexpr auto kRestartPause = std::chrono::seconds(1);
constexpr uint16_t kTypeAaaa = 28;

Result<UniqueFd> Listen(int type, int port, uint32_t address = INADDR_ANY) {
  UniqueFd fd(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in at{.sin_family = AF_INET,
                 .sin_port = htons(static_cast<uint16_t>(port)),
                 .sin_addr = {htonl(address)}};
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      (type == SOCK_STREAM && listen(fd.get(), 1024) != 0))
    return FailErrno("cannot listen for connections of sandboxes");
  return fd;
}

Status ListenInside(ResolverSockets& sockets, const InsideAddress& address) {
  TRY(ConfigureInside(address));
  TRY_ASSIGN(sockets.open_udp, Listen(SOCK_DGRAM, kOpenDnsPort));
  TRY_ASSIGN(sockets.open_tcp, Listen(SOCK_STREAM, kOpenDnsPort));
  TRY_ASSIGN(sockets.filtered_udp, Listen(SOCK_DGRAM, kFilteredDnsPort));
  TRY_ASSIGN(sockets.filtered_tcp, Listen(SOCK_STREAM, kFilteredDnsPort));
  return {};
}

std::string ProtocolName(int protocol) {
  switch (protocol) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
      return "icmp";
    default:
      return std::to_string(protocol);
  }
}

}  // namespace

Result<std::unique_ptr<EgressGuard>> EgressGuard::Create(const Config& config,
                                                         const NetworkRoot& network,
                                                         SlotTable& slots, HostLink& link) {
  TRY_ASSIGN(Firewall firewall, Firewall::Open(network.rules.table));
  std::unique_ptr<EgressGuard> guard(new EgressGuard(config, std::move(firewall)));
  TRY_ASSIGN(auto nameservers, FindNameservers(config.dns, kResolvConf));
  if (nameservers.empty())
    LogWarn("sandboxes can resolve no names: this host has no nameserver; set dns to one");
  TRY_ASSIGN(guard->program_, OpenNetProgram());
  TRY(guard->MakeSockets(slots, link));
  Redirections redirections{.resolver = guard->slot_.sandbox_address()};
  if (!config.egress_proxy.empty()) {
    TRY(ParseProxy(config.egress_proxy));
    redirections.relay = guard->slot_.host_address();
    TRY_ASSIGN(guard->relay_listener_, Listen(SOCK_STREAM, kRelayPort, redirections.relay));
  }
  TRY(RunNft(RenderRedirections(network.rules, redirections)));
  auto log = PacketLog::Open(network.rules.log_group);
  if (log)
    guard->log_.emplace(std::move(*log));
  else
    LogWarn("blocked connections of sandboxes are not reported",
            {{"error", log.error().message()}});
  return guard;
}

EgressGuard::~EgressGuard() {
  if (!loop_) return;
  for (int fd : {timer_.get(), log_ ? log_->fd() : -1, resolver_socket_.get(), relay_socket_.get()})
    if (fd >= 0) loop_->Unwatch(fd);
}

Status EgressGuard::MakeSockets(SlotTable& slots, HostLink& link) {
  TRY_ASSIGN(auto entries, slots.List());
  // That of an earlier engine, which is gone: flows of living sandboxes lead there.
  for (const auto& entry : entries)
    if (!slot_ && entry.sandbox_id == kResolverId) {
      TRY_ASSIGN(slot_, slots.Adopt(entry.number, kResolverId));
    }
  if (!slot_) {
    TRY_ASSIGN(slot_, slots.Allocate(kResolverId));
  }
  UniqueFd own(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own || unshare(CLONE_NEWNET) != 0) return FailErrno("cannot make the resolver's network");
  resolver_network_.Reset(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  // A network of its own: nothing of it is reachable on the host's addresses, whatever the host's
  // other rules say.
  Status made;
  if (!resolver_network_)
    made = FailErrno("cannot open the resolver's network");
  else
    made = link.CreateVeth(slot_, resolver_network_.get());
  if (made) made = ListenInside(sockets_, InsideOf(slot_));
  if (setns(own.get(), CLONE_NEWNET) != 0) std::abort();
  if (made) made = link.Settle(slot_);
  return made;
}

Status EgressGuard::Start(EventLoop& loop, Processes processes,
                          std::function<void(Blocked)> blocked) {
  loop_ = &loop;
  processes_ = std::move(processes);
  blocked_ = std::move(blocked);
  timer_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_) return FailErrno("cannot make a timer");
  TRY(loop.Watch(timer_.get(), EPOLLIN, [this] { OnTick(); }));
  if (log_) TRY(loop.Watch(log_->fd(), EPOLLIN, [this] { OnPackets(); }));
  if (relay_listener_) TRY(StartRelay());
  return StartResolver();
}

// ---- sandboxes --------------------------------------------------------------

void EgressGuard::Add(const Sandbox& sandbox) {
  if (!sandbox.address) return;
  Dismiss(sandbox.address);
  Guarded& guarded = guarded_[sandbox.address];
  guarded = {.id = sandbox.instance.id,
             .pid = sandbox.instance.pid,
             .policy = EgressPolicy(sandbox.egress)};
  if (guarded.policy.filters_names()) TellPolicy(sandbox.address, sandbox.egress);
}

void EgressGuard::Remove(const Sandbox& sandbox) {
  auto it = guarded_.find(sandbox.address);
  if (it == guarded_.end() || it->second.id != sandbox.instance.id) return;
  Dismiss(sandbox.address);
  if (it->second.policy.filters_names()) TellPolicy(sandbox.address, {});
  Tell(relay_socket_, {{"op", "forget"}, {"sandbox", sandbox.address}});
  guarded_.erase(it);
}

void EgressGuard::Dismiss(uint32_t address) {
  auto it = guarded_.find(address);
  if (it == guarded_.end()) return;
  std::vector<uint32_t> admitted;
  for (const auto& [destination, entry] : it->second.admitted) admitted.push_back(destination);
  if (Status done = firewall_.Dismiss(address, admitted); !done)
    LogError("addresses stay admitted that should not", {{"error", done.error().message()}});
  it->second.admitted.clear();
}

Status EgressGuard::Set(const Sandbox& sandbox, const Egress& egress) {
  auto it = guarded_.find(sandbox.address);
  if (it == guarded_.end())
    return Fail(Code::kFailedPrecondition, "the sandbox has no network whose rules could change");
  Guarded& guarded = it->second;
  EgressPolicy before = guarded.policy, policy(egress);
  TRY(firewall_.Replace(sandbox.address, before, policy));
  guarded.policy = policy;
  Status done = Enforce(sandbox.address, egress, guarded);
  // What is told to have failed must not hold.
  if (!done && firewall_.Replace(sandbox.address, policy, before)) {
    guarded.policy = before;
    TellPolicy(sandbox.address, sandbox.egress);
  }
  return done;
}

Status EgressGuard::Enforce(uint32_t sandbox, const Egress& egress, Guarded& guarded) {
  const EgressPolicy& policy = guarded.policy;
  std::vector<uint32_t> dismissed;
  for (const auto& [address, entry] : guarded.admitted)
    if (!policy.filters_names() || !policy.AllowsName(entry.name)) dismissed.push_back(address);
  TRY(firewall_.Dismiss(sandbox, dismissed));
  for (uint32_t address : dismissed) guarded.admitted.erase(address);
  TellPolicy(sandbox, egress);
  return firewall_.Cut(sandbox, [&](uint32_t destination) {
    // A flow of queries stays with the service it was led to first.
    if (destination == kDnsAddress) return true;
    return policy.Denies(destination) && !guarded.admitted.contains(destination);
  });
}

// ---- the resolver -----------------------------------------------------------

Status EgressGuard::StartResolver() {
  resolver_started_ = Clock::now();
  Message settings{
      {{"dns", config_.dns}, {"queries_per_second", config_.dns_queries_per_second}}, "", {}};
  for (const UniqueFd* fd :
       {&sockets_.open_udp, &sockets_.open_tcp, &sockets_.filtered_udp, &sockets_.filtered_tcp}) {
    TRY_ASSIGN(UniqueFd copy, Duplicate(fd->get()));
    settings.fds.push_back(std::move(copy));
  }
  TRY_ASSIGN(NetProcess started,
             StartNetProgram(program_.get(), kResolverRole, slot_.uid_base(), std::move(settings)));
  resolver_ = std::move(started.forked);
  resolver_socket_ = std::move(started.socket);
  for (const auto& [address, egress] : filtered_)
    Tell(resolver_socket_,
         {{"op", "policy"}, {"sandbox", address}, {"egress", EncodeEgress(egress)}});
  return loop_->Watch(resolver_socket_.get(), EPOLLIN, [this] { OnResolver(); });
}

Status EgressGuard::StartRelay() {
  relay_started_ = Clock::now();
  Message settings{{{"proxy", config_.egress_proxy}, {"sandboxes", config_.network_cidr}}, "", {}};
  TRY_ASSIGN(UniqueFd listener, Duplicate(relay_listener_.get()));
  settings.fds.push_back(std::move(listener));
  TRY_ASSIGN(NetProcess started, StartNetProgram(program_.get(), kRelayRole, slot_.uid_base() + 1,
                                                 std::move(settings)));
  relay_socket_ = std::move(started.socket);
  return loop_->Watch(relay_socket_.get(), EPOLLIN, [this] {
    LogError("the relay to the proxy ended and is started again");
    loop_->Unwatch(relay_socket_.get());
    relay_socket_.Reset();
    Arm();
  });
}

void EgressGuard::Tell(const UniqueFd& socket, json::object head) {
  if (!socket) return;
  // One that does not read is as good as dead: another is started when its end is seen.
  if (!Send(socket.get(), {std::move(head), "", {}})) shutdown(socket.get(), SHUT_RDWR);
}

void EgressGuard::TellPolicy(uint32_t address, const Egress& egress) {
  if (EgressPolicy(egress).filters_names()) {
    filtered_[address] = egress;
    Tell(resolver_socket_,
         {{"op", "policy"}, {"sandbox", address}, {"egress", EncodeEgress(egress)}});
  } else if (filtered_.erase(address)) {
    Tell(resolver_socket_, {{"op", "forget"}, {"sandbox", address}});
  }
}

void EgressGuard::OnResolver() {
  auto message = Receive(resolver_socket_.get());
  if (message) {
    auto op = GetString(message->head, "op");
    if (op == "refused") return OnRefusedName(message->head);
    if (op == "admit")
      Tell(resolver_socket_, {{"op", "admitted"},
                              {"call", message->head["call"]},
                              {"ok", Admit(message->head) ? 1 : 0}});
    return;
  }
  LogError("the resolver of sandboxes ended and is started again", {{"pid", resolver_.pid}});
  loop_->Unwatch(resolver_socket_.get());
  resolver_socket_.Reset();
  resolver_ = {};
  Arm();
}

bool EgressGuard::Admit(const json::object& head) {
  auto sandbox = GetInt(head, "sandbox");
  auto name = GetString(head, "name");
  const json::value* list = head.if_contains("addresses");
  if (!sandbox || !name || !list || !list->is_array()) return false;
  auto it = guarded_.find(static_cast<uint32_t>(*sandbox));
  // SECURITY: the resolver is not believed: its word admits nothing that the rules do not name, and
  // nothing that is not the internet (a name of the sandbox's choice may lead anywhere).
  if (it == guarded_.end() || !it->second.policy.filters_names() ||
      !it->second.policy.AllowsName(*name))
    return false;
  Guarded& guarded = it->second;
  std::vector<uint32_t> fresh;
  auto now = Clock::now();
  for (const json::value& entry : list->get_array()) {
    if (!entry.is_array() || entry.get_array().size() != 2) return false;
    boost::system::error_code bad, worse;
    auto address = entry.get_array()[0].to_number<uint32_t>(bad);
    auto ttl = entry.get_array()[1].to_number<int64_t>(worse);
    if (bad || worse) return false;
    if (!IsInternet(address) || !guarded.policy.Denies(address)) continue;
    auto until = now + std::chrono::seconds(std::clamp(ttl, kShortestAdmission, kLongestAdmission));
    auto [known, added] = guarded.admitted.try_emplace(address, Admitted{*name, until});
    known->second.until = std::max(known->second.until, until);
    if (added) fresh.push_back(address);
  }
  Status done;
  if (guarded.admitted.size() > kMaxAdmitted)
    done = Fail(Code::kResourceExhausted, "too many addresses are admitted already");
  else
    done = firewall_.Admit(it->first, fresh);
  if (!done) {
    LogError("addresses of a name cannot be admitted",
             {{"sandbox", guarded.id}, {"error", done.error().message()}});
    for (uint32_t address : fresh) guarded.admitted.erase(address);
  }
  Arm();
  return done.has_value();
}

// ---- reports ----------------------------------------------------------------

void EgressGuard::OnRefusedName(const json::object& head) {
  auto sandbox = GetInt(head, "sandbox");
  auto name = GetString(head, "name");
  if (!sandbox || !name) return;
  // Programs ask for both kinds of addresses at once; one report is enough.
  if (GetInt(head, "type") == kTypeAaaa) return;
  auto it = guarded_.find(static_cast<uint32_t>(*sandbox));
  if (it == guarded_.end() || !MayReport(it->second)) return;
  blocked_({.id = it->second.id, .destination = *name, .protocol = "dns"});
}

void EgressGuard::OnPackets() {
  for (const RefusedPacket& packet : log_->Read()) {
    auto it = guarded_.find(packet.source);
    if (it == guarded_.end() || !MayReport(it->second)) continue;
    Blocked blocked{.id = it->second.id,
                    .destination = FormatIpv4(packet.destination),
                    .port = packet.destination_port,
                    .protocol = ProtocolName(packet.protocol)};
    Describe(blocked, it->second, packet);
    blocked_(std::move(blocked));
  }
}

void EgressGuard::Describe(Blocked& blocked, const Guarded& guarded, const RefusedPacket& packet) {
  auto now = Clock::now();
  lookup_time_ = std::min(kMostLookupTime, lookup_time_ + (now - looked_at_) / kLookupShare);
  looked_at_ = now;
  if (lookup_time_ <= lookup_time_.zero()) return;
  auto begun = ThreadClock::now();
  auto owner = FindSocketOwner(guarded.pid, processes_(guarded.id), packet.protocol,
                               packet.source_port, begun + kLongestLookup);
  lookup_time_ -= ThreadClock::now() - begun;
  if (!owner) return;
  blocked.pid = owner->pid;
  blocked.command = std::move(owner->command);
}

bool EgressGuard::MayReport(Guarded& guarded) {
  auto now = Clock::now();
  if (guarded.counted == 0 && now - guarded.minute >= std::chrono::minutes(1)) {
    guarded.minute = now;
    guarded.reported = 0;
  }
  if (guarded.reported < config_.blocked_events_per_minute) {
    ++guarded.reported;
    return true;
  }
  ++guarded.counted;  // told by OnTick() when the minute is over
  Arm();
  return false;
}

void EgressGuard::Arm() {
  if (std::exchange(armed_, true)) return;
  itimerspec spec{};
  spec.it_value.tv_sec = 1;
  timerfd_settime(timer_.get(), 0, &spec, nullptr);
}

void EgressGuard::OnTick() {
  uint64_t times;
  (void)!read(timer_.get(), &times, sizeof times);
  armed_ = false;
  auto now = Clock::now();
  bool waiting = false;
  for (auto& [address, guarded] : guarded_) {
    std::vector<uint32_t> over;
    for (const auto& [admitted, entry] : guarded.admitted)
      if (entry.until <= now) over.push_back(admitted);
    if (Status done = firewall_.Dismiss(address, over); !done)
      LogError("admitted addresses cannot be taken back", {{"error", done.error().message()}});
    for (uint32_t one : over) guarded.admitted.erase(one);
    if (guarded.counted > 0 && now - guarded.minute >= std::chrono::minutes(1)) {
      blocked_({.id = guarded.id, .more = std::exchange(guarded.counted, 0)});
      guarded.minute = {};
    }
    waiting = waiting || !guarded.admitted.empty() || guarded.counted > 0;
  }
  if (!resolver_socket_ && now - resolver_started_ >= kRestartPause) {
    if (Status started = StartResolver(); !started)
      LogError("the resolver of sandboxes cannot be started",
               {{"error", started.error().message()}});
  }
  if (relay_listener_ && !relay_socket_ && now - relay_started_ >= kRestartPause) {
    if (Status started = StartRelay(); !started)
      LogError("the relay to the proxy cannot be started", {{"error", started.error().message()}});
  }
  if (waiting || !resolver_socket_ || (relay_listener_ && !relay_socket_)) Arm();
}

}  // namespace caisson::engine
