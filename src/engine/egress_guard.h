// Watches over what sandboxes reach, in the engine's main process: gives the resolver and the
// firewall the rules of each sandbox, admits the addresses of names that were resolved and takes
// them back when their time is over, and reports what was refused.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/config.h"
#include "engine/engine.h"
#include "engine/event_loop.h"
#include "engine/firewall.h"
#include "engine/network.h"
#include "engine/packet_log.h"
#include "engine/process.h"
#include "engine/protocol.h"
#include "engine/relay.h"
#include "engine/resolver.h"

namespace caisson::engine {

// The id under which the resolver holds a slot. No sandbox can have it.
inline constexpr std::string_view kResolverId = "resolver.";

class EgressGuard {
 public:
  // Makes the resolver's network and leads DNS there. `slots` and `link` must outlive it.
  static Result<std::unique_ptr<EgressGuard>> Create(const Config& config,
                                                     const NetworkRoot& network, SlotTable& slots,
                                                     HostLink& link);
  // The processes of a sandbox, to find who tried something.
  using Processes = std::function<std::vector<int>(const std::string& id)>;
  // Starts the resolver, and the relay if there is a proxy. `loop` must outlive it.
  Status Start(EventLoop& loop, Processes processes, std::function<void(Blocked)> blocked);
  ~EgressGuard();

  void Add(const Sandbox& sandbox);
  void Remove(const Sandbox& sandbox);
  // The firewall first, then open connections, then the resolver: nothing new gets through that the
  // new rules deny. Fails before anything is changed, or when open connections cannot be cut.
  Status Set(const Sandbox& sandbox, const Egress& egress);

 private:
  using Clock = std::chrono::steady_clock;
  struct Admitted {
    std::string name;
    Clock::time_point until;
  };
  struct Guarded {
    std::string id;
    int pid = 0;  // its first process
    EgressPolicy policy{Egress{}};
    std::map<uint32_t, Admitted> admitted;
    // Blocked attempts of this minute: reported, and those only counted.
    Clock::time_point minute;
    int64_t reported = 0, counted = 0;
  };

  EgressGuard(const Config& config, Firewall firewall)
      : config_(config), firewall_(std::move(firewall)) {}
  Status MakeSockets(SlotTable& slots, HostLink& link);
  // What else a new policy means: names that are no more admitted, flows that are cut.
  Status Enforce(uint32_t sandbox, const Egress& egress, Guarded& guarded);
  // Takes back whatever was admitted for this sandbox.
  void Dismiss(uint32_t address);
  Status StartResolver();
  Status StartRelay();
  void OnResolver();
  void Tell(const UniqueFd& socket, json::object head);
  void TellPolicy(uint32_t address, const Egress& egress);
  bool Admit(const json::object& head);
  void OnRefusedName(const json::object& head);
  void OnPackets();
  void Describe(Blocked& blocked, const Guarded& guarded, const RefusedPacket& packet);
  // Whether it may be told now; else it is counted.
  bool MayReport(Guarded& guarded);
  void OnTick();
  void Arm();

  const Config& config_;
  Firewall firewall_;
  Slot slot_;  // of the resolver
  UniqueFd resolver_network_;
  UniqueFd program_;  // caisson-net
  ResolverSockets sockets_;
  UniqueFd relay_listener_;  // if there is a proxy

  EventLoop* loop_ = nullptr;
  Processes processes_;
  std::function<void(Blocked)> blocked_;
  Forked resolver_;
  UniqueFd resolver_socket_;
  Clock::time_point resolver_started_, relay_started_;
  UniqueFd relay_socket_;  // closes when either side ends
  std::optional<PacketLog> log_;
  UniqueFd timer_;
  bool armed_ = false;
  Clock::time_point looked_at_;              // for a process, the last time
  std::chrono::nanoseconds lookup_time_{0};  // that may be spent on it now
  std::map<uint32_t, Guarded> guarded_;      // by address
  std::map<uint32_t, Egress> filtered_;      // what the resolver knows
};

}  // namespace caisson::engine
