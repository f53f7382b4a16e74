#include "engine/packet_log.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>

namespace caisson::engine {
namespace {

constexpr uint32_t kCopiedBytes = 64;  // the headers
constexpr int kMessagesAtOnce = 64;

constexpr uint16_t Type(int message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_ULOG << 8 | message);
}

uint32_t U32At(std::string_view bytes, size_t at) {
  uint32_t value;
  memcpy(&value, bytes.data() + at, sizeof value);
  return ntohl(value);
}
int U16At(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) << 8 | static_cast<unsigned char>(bytes[at + 1]);
}

}  // namespace

std::optional<RefusedPacket> ParseRefusedPacket(std::string_view packet) {
  constexpr size_t kSmallestHeader = 20;
  if (packet.size() < kSmallestHeader || (packet[0] >> 4 & 0xf) != 4) return std::nullopt;
  size_t header = static_cast<size_t>(packet[0] & 0xf) * 4;
  RefusedPacket refused{.source = U32At(packet, 12),
                        .destination = U32At(packet, 16),
                        .protocol = static_cast<unsigned char>(packet[9])};
  bool has_ports = refused.protocol == IPPROTO_TCP || refused.protocol == IPPROTO_UDP;
  // Fragments after the first have no ports.
  bool is_first = (U16At(packet, 6) & 0x1fff) == 0;
  if (has_ports && is_first && header >= kSmallestHeader && packet.size() >= header + 4) {
    refused.source_port = U16At(packet, header);
    refused.destination_port = U16At(packet, header + 2);
  }
  return refused;
}

Result<PacketLog> PacketLog::Open(int group) {
  TRY_ASSIGN(Netlink netlink, Netlink::Open(NETLINK_NETFILTER));
  nfgenmsg header{.nfgen_family = AF_UNSPEC,
                  .version = NFNETLINK_V0,
                  .res_id = htons(static_cast<uint16_t>(group))};
  NetlinkBatch batch;
  nfulnl_msg_config_cmd bind{.command = NFULNL_CFG_CMD_BIND};
  batch.Begin(Type(NFULNL_MSG_CONFIG), 0, header, "cannot listen to the kernel's log of packets");
  batch.Add(NFULA_CFG_CMD, &bind, sizeof bind);
  nfulnl_msg_config_mode mode{
      .copy_range = htonl(kCopiedBytes), .copy_mode = NFULNL_COPY_PACKET, ._pad = 0};
  batch.Begin(Type(NFULNL_MSG_CONFIG), 0, header, "cannot configure the kernel's log of packets");
  batch.Add(NFULA_CFG_MODE, &mode, sizeof mode);
  // One by one: whoever sent it may be gone a moment later.
  batch.AddIpv4(NFULA_CFG_QTHRESH, 1);
  TRY(netlink.Run(batch));
  return PacketLog(std::move(netlink));
}

std::vector<RefusedPacket> PacketLog::Read() {
  std::vector<RefusedPacket> packets;
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    alignas(nlmsghdr) char buffer[16 << 10];
    ssize_t n = recv(netlink_.fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0) break;
    auto left = static_cast<uint32_t>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      constexpr size_t kHead = NLMSG_LENGTH(sizeof(nfgenmsg));
      if (message->nlmsg_type != Type(NFULNL_MSG_PACKET) || message->nlmsg_len < kHead) continue;
      NetlinkAttributes attributes(reinterpret_cast<char*>(message) + kHead,
                                   message->nlmsg_len - kHead);
      if (auto packet = ParseRefusedPacket(attributes.Get(NFULA_PAYLOAD)))
        packets.push_back(*packet);
    }
  }
  return packets;
}

}  // namespace caisson::engine
