// The network of a sandbox: a veth pair from its network namespace to the host, routed and
// masqueraded by the host under the rules of nft.h.
//
//   sandbox: eth0 198.18.x.y ---- veth ---- host: cs1a2b-N ---- masquerade ---- uplink
//
// In the order of their use: the engine process calls NetworkRoot::SetUp() once; each launcher
// opens a HostLink; per sandbox the launcher calls HostLink::CreateVeth() and the child, inside its
// network namespace, ConfigureInside().
//
// A veth is hardly ever deleted by hand (26 ms): it dies with the sandbox's network namespace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "engine/netlink.h"
#include "engine/nft.h"
#include "engine/slot.h"

namespace caisson::engine {

// What this machine's network can do for sandboxes. A plain value: compute it once, hand it to the
// launchers.
struct NetworkRoot {
  bool available = false;
  std::string reason;   // why not, in plain words, when not available
  std::string warning;  // works, but with something the operator should know (no route, ...)
  NftRules rules;       // as they were loaded
  uint32_t mtu = 1500;  // of the uplink; sandboxes get the same
  bool forwarding_was_off = false;  // SetUp switched net.ipv4.ip_forward on

  // Loads this server's nftables table (replacing an older one in one transaction: no moment
  // without rules) and switches IPv4 forwarding on if it is off. Never fails as a whole: with
  // config.network "none", or where the machine cannot do it, available is false and `reason` says
  // why; sandboxes then have only their loopback. Logs what it changed. The rules of sandboxes that
  // live already are in force from the first moment.
  static NetworkRoot SetUp(const Config& config, std::vector<Resident> living = {});
  // Removes the table. Only when no sandbox of this server lives: without it, nothing guards them.
  // Forwarding stays on: others may rely on it by now.
  static Status TearDown(const Config& config);
  // Tries everything SetUp and CreateVeth need, in a network namespace of its own that vanishes
  // again. Must be called from a single-threaded process (it forks).
  static Status Probe(const Config& config);
};

// A launcher's netlink socket in the host's network namespace. Not thread-safe.
class HostLink {
 public:
  static Result<HostLink> Open(const NetworkRoot& root);

  // Makes the veth pair: host end up, with its address and the route to the sandbox; other end
  // named eth0 placed into the network namespace of `netns_fd` (an open /proc/<pid>/ns/net).
  // One of the same name is a dead sandbox's: waits a moment for it to go, then removes it.
  Status CreateVeth(const Slot& slot, int netns_fd);
  // Nothing passes any more. A dead sandbox's network lives on as long as its sockets have
  // something to say, which may be minutes. Gone already is success.
  Status TakeDown(const Slot& slot);
  // Call it when the sandbox has configured its end, before anybody uses the sandbox. The host's
  // end then passes packets; without it the kernel may take some more milliseconds, and a first
  // packet lost meanwhile costs a second.
  Status Settle(const Slot& slot);

 private:
  HostLink(Netlink netlink, uint32_t mtu) : netlink_(std::move(netlink)), mtu_(mtu) {}
  Status DeleteVeth(const Slot& slot);

  Netlink netlink_;
  uint32_t mtu_;
};

// What the child needs; copy it out of the slot before clone.
struct InsideAddress {
  uint32_t sandbox = 0;
  uint32_t host = 0;
};
inline InsideAddress InsideOf(const Slot& slot) {
  return {slot.sandbox_address(), slot.host_address()};
}

// Both are called inside the sandbox's network namespace, with CAP_NET_ADMIN over it.
// Where the machine has no network for sandboxes.
Status ConfigureLoopback();
// After CreateVeth(): loopback, eth0 with its address, and the default route.
Status ConfigureInside(const InsideAddress& address);

}  // namespace caisson::engine
