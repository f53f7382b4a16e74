// What one sandbox may reach, in the kernel: elements of the sets of this server's nftables table
// (nft.h), changed by netlink in one transaction each, some tens of microseconds. Knows nothing of
// who lives; a sandbox is its address.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/egress.h"
#include "engine/netlink.h"

namespace caisson::engine {

class Firewall {
 public:
  // Both sockets are bound to the network namespace the process is in now.
  static Result<Firewall> Open(std::string table);

  // Replaces the rules of a sandbox. With the open policy nothing is kept for it.
  Status Replace(uint32_t sandbox, const EgressPolicy& before, const EgressPolicy& after);
  // Addresses it may reach although they are denied, because of a name they were resolved from.
  // An address must be admitted only once before it is dismissed.
  Status Admit(uint32_t sandbox, const std::vector<uint32_t>& addresses);
  Status Dismiss(uint32_t sandbox, const std::vector<uint32_t>& addresses);

  // Forgets every connection of the sandbox to a destination for which `denied` says true, so that
  // its next packet is judged anew.
  Status Cut(uint32_t sandbox, const std::function<bool(uint32_t destination)>& denied);

  // Whether the sandbox has opened connections since ForgetConnections(). Some microseconds; to
  // look through the kernel's table of them takes milliseconds.
  Result<bool> HasConnections(uint32_t sandbox);
  // Removes all its connections from the kernel's table.
  Status ForgetConnections(uint32_t sandbox);
  // The same of all addresses of the network that nobody has: an engine that died, or had no
  // network, could not do it.
  Status ForgetStrays(const Cidr& network, const std::function<bool(uint32_t address)>& has_owner);

 private:
  // Forgets those for which `wanted` says true, of one source or of all.
  Status Forget(std::optional<uint32_t> source,
                const std::function<bool(uint32_t source, uint32_t destination)>& wanted);
  Firewall(std::string table, Netlink netlink)
      : table_(std::move(table)), netlink_(std::move(netlink)) {}
  Status Transact(const std::function<void(NetlinkBatch&)>& fill);
  void AddRanges(NetlinkBatch& batch, uint16_t type, uint32_t sandbox,
                 const std::vector<Range>& ranges);
  void AddPairs(NetlinkBatch& batch, uint16_t type, uint32_t sandbox,
                const std::vector<uint32_t>& addresses);
  void BeginElements(NetlinkBatch& batch, uint16_t type, const char* set);
  void AddAddress(NetlinkBatch& batch, uint16_t type, const char* set, uint32_t sandbox);

  std::string table_;
  Netlink netlink_;
};

}  // namespace caisson::engine
