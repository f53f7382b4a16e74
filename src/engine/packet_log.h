// Packets that the firewall refused, as the kernel reports them (nflog).
#pragma once

#include <vector>

#include "base/error.h"
#include "engine/netlink.h"

namespace caisson::engine {

struct RefusedPacket {
  uint32_t source = 0;  // host byte order
  uint32_t destination = 0;
  int protocol = 0;  // IPPROTO_*
  int source_port = 0;
  int destination_port = 0;  // 0 = the protocol has none
};
// From the beginning of an IPv4 packet; nothing if it is something else.
std::optional<RefusedPacket> ParseRefusedPacket(std::string_view packet);

class PacketLog {
 public:
  // Fails when the kernel has no such log, or somebody else listens to this group.
  static Result<PacketLog> Open(int group);

  int fd() const { return netlink_.fd(); }
  // What is there now, at most some dozens; never waits.
  std::vector<RefusedPacket> Read();

 private:
  explicit PacketLog(Netlink netlink) : netlink_(std::move(netlink)) {}
  Netlink netlink_;
};

}  // namespace caisson::engine
