#include "engine/network.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/firewall.h"
#include "engine/nft.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

// Index of eth0 inside: chosen by us, above the tunnel devices some kernels put into every new
// namespace.
constexpr int kInsideIndex = 64;
constexpr int kLoopbackIndex = 1;
constexpr auto kStaleInterfaceWait = std::chrono::milliseconds(100);
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";

// What both ends of the pair have in common.
void AddEnd(NetlinkBatch& batch, const Slot& slot, std::string_view name, uint32_t mtu) {
  // Both carry the same hardware address and no ARP is spoken: a frame always fits the other end,
  // the first packet needs no round trip, and there is no ARP to forge.
  auto n = static_cast<uint32_t>(slot.number());
  const uint8_t mac[6] = {0x02,
                          0xc5,
                          0x00,
                          static_cast<uint8_t>(n >> 16),
                          static_cast<uint8_t>(n >> 8),
                          static_cast<uint8_t>(n)};
  batch.AddText(IFLA_IFNAME, name);
  batch.AddU32(IFLA_MTU, mtu);
  batch.Add(IFLA_ADDRESS, mac, sizeof mac);
  // Not one queue per CPU of the host: each costs memory and time to make.
  batch.AddU32(IFLA_NUM_TX_QUEUES, 1);
  batch.AddU32(IFLA_NUM_RX_QUEUES, 1);
}

ifinfomsg Link(int index, unsigned flags = 0) {
  return {.ifi_family = AF_UNSPEC, .ifi_index = index, .ifi_flags = flags, .ifi_change = flags};
}

Status GoneIsFine(Status status) {
  if (!status && status.error().sys_errno() == ENODEV) return {};
  return status;
}

// No link-local IPv6 address, hence no IPv6 traffic at all. Fails harmlessly without IPv6.
void AddNoIpv6(NetlinkBatch& batch, int index) {
  batch.Begin(RTM_SETLINK, 0, Link(index), "");
  batch.Nest(IFLA_AF_SPEC);
  batch.Nest(AF_INET6);
  batch.AddU8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
  batch.EndNest();
  batch.EndNest();
}

void AddUp(NetlinkBatch& batch, int index, std::string_view doing) {
  batch.Begin(RTM_SETLINK, 0, Link(index, IFF_UP), doing);
}

// Point to point: the kernel adds the route to `peer` by itself.
void AddAddress(NetlinkBatch& batch, int index, uint32_t local, uint32_t peer,
                std::string_view doing) {
  batch.Begin(RTM_NEWADDR, NLM_F_CREATE,
              ifaddrmsg{.ifa_family = AF_INET,
                        .ifa_prefixlen = 32,
                        .ifa_scope = RT_SCOPE_UNIVERSE,
                        .ifa_index = static_cast<uint32_t>(index)},
              doing);
  batch.AddIpv4(IFA_LOCAL, local);
  batch.AddIpv4(IFA_ADDRESS, peer);
}

// The interface of the default route and its MTU.
struct Uplink {
  std::string name;
  uint32_t mtu = 1500;
};
std::optional<Uplink> FindUplink() {
  auto routes = ReadFile("/proc/net/route");
  if (!routes) return std::nullopt;
  for (std::string_view line : Split(*routes, '\n')) {
    auto columns = Split(line, '\t');
    if (columns.size() < 8 || columns[1] != "00000000" || columns[7] != "00000000") continue;
    Uplink uplink{std::string(Trim(columns[0]))};
    ifreq request{};
    uplink.name.copy(request.ifr_name, IFNAMSIZ - 1);
    UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd && ioctl(fd.get(), SIOCGIFMTU, &request) == 0 && request.ifr_mtu >= 576)
      uplink.mtu = static_cast<uint32_t>(request.ifr_mtu);
    return uplink;
  }
  return std::nullopt;
}

Result<NftRules> RulesOf(const Config& config, std::vector<Resident> living) {
  TRY_ASSIGN(Cidr network, ParseCidr(config.network_cidr));
  TRY_ASSIGN(std::vector<Cidr> never, ParseCidrs(config.deny_always));
  std::string tag = ServerTag(config.data_dir);
  return NftRules{.table = NftTableName(tag),
                  .interface_prefix = InterfacePrefix(tag),
                  .network = network,
                  .never = std::move(never),
                  .max_connections = config.network_max_connections,
                  .log_group = LogGroup(tag),
                  .residents = std::move(living)};
}

Status TryHere(const Config& config) {
  if (unshare(CLONE_NEWNET) != 0) return FailErrno("cannot make a network namespace");
  Resident example{kDnsAddress, {.allow = {"192.0.2.1"}, .deny = {"0.0.0.0/0"}}};
  TRY_ASSIGN(NftRules rules, RulesOf(config, {example}));
  TRY(RunNft(RenderNftRules(rules) +
             RenderRedirections(rules, {example.address, example.address})));
  TRY_ASSIGN(Firewall firewall, Firewall::Open(rules.table));
  TRY(firewall.ForgetConnections(example.address));
  TRY_ASSIGN(Netlink netlink, Netlink::Open());
  NetlinkBatch batch;
  batch.Begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, Link(0), "cannot make a veth pair");
  batch.Nest(IFLA_LINKINFO);
  batch.AddText(IFLA_INFO_KIND, "veth");
  batch.EndNest();
  return netlink.Run(batch);
}

// Switches forwarding on if it is off; true if it was.
Result<bool> EnableForwarding() {
  TRY_ASSIGN(std::string value, ReadFile(kForwarding));
  if (Trim(value) != "0") return false;
  TRY(WriteKernelFile(kForwarding, "1"));
  return true;
}

Status SetUpHost(const Config& config, std::vector<Resident> living, NetworkRoot& root) {
  TRY(NetworkRoot::Probe(config));
  TRY_ASSIGN(root.rules, RulesOf(config, std::move(living)));
  // Rules first: there is no moment with forwarding and without them.
  TRY(RunNft(RenderNftRules(root.rules)));
  auto forwarding = EnableForwarding();
  if (!forwarding)
    return tl::unexpected(
        std::move(forwarding).error().Context("cannot switch IPv4 forwarding on"));
  root.forwarding_was_off = *forwarding;
  return {};
}

}  // namespace

NetworkRoot NetworkRoot::SetUp(const Config& config, std::vector<Resident> living) {
  NetworkRoot root;
  if (config.network == "none") {
    root.reason = "the setting network is \"none\"";
    return root;
  }
  auto uplink = FindUplink();
  if (uplink)
    root.mtu = uplink->mtu;
  else
    root.warning = "this host has no IPv4 default route, so sandboxes cannot reach the internet";
  Status done = SetUpHost(config, std::move(living), root);
  if (!done) {
    root.reason = done.error().message();
    return root;
  }
  root.available = true;
  if (root.forwarding_was_off)
    LogInfo("switched IPv4 forwarding (net.ipv4.ip_forward) on for the network of sandboxes");
  return root;
}

Status NetworkRoot::TearDown(const Config& config) {
  return RunNft(RenderNftRemoval(NftTableName(ServerTag(config.data_dir))));
}

Status NetworkRoot::Probe(const Config& config) {
  return TryInChild([&config] { return TryHere(config); });
}

Result<HostLink> HostLink::Open(const NetworkRoot& root) {
  TRY_ASSIGN(Netlink netlink, Netlink::Open());
  return HostLink(std::move(netlink), root.mtu);
}

Status HostLink::CreateVeth(const Slot& slot, int netns_fd) {
  const int index = slot.interface_index();
  auto deadline = std::chrono::steady_clock::now() + kStaleInterfaceWait;
  bool deleted = false;
  while (true) {
    NetlinkBatch batch;
    batch.Begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, Link(index, IFF_NOARP),
                "cannot make the sandbox's network interface");
    AddEnd(batch, slot, slot.interface_name(), mtu_);
    batch.Nest(IFLA_LINKINFO);
    batch.AddText(IFLA_INFO_KIND, "veth");
    batch.Nest(IFLA_INFO_DATA);
    batch.Nest(VETH_INFO_PEER);
    ifinfomsg peer = Link(kInsideIndex, IFF_NOARP);
    batch.AddRaw(&peer, sizeof peer);
    AddEnd(batch, slot, "eth0", mtu_);
    batch.AddU32(IFLA_NET_NS_FD, static_cast<uint32_t>(netns_fd));
    batch.EndNest();
    batch.EndNest();
    batch.EndNest();
    AddNoIpv6(batch, index);
    AddUp(batch, index, "cannot bring the sandbox's network interface up");
    AddAddress(batch, index, slot.host_address(), slot.sandbox_address(),
               "cannot give the host its end of the sandbox's link");
    Status status = netlink_.Run(batch);
    if (status || status.error().sys_errno() != EEXIST) return status;
    // The kernel takes a dead sandbox's interface away a little after the sandbox, or long after,
    // when its sockets still have something to send.
    if (std::chrono::steady_clock::now() >= deadline) {
      if (std::exchange(deleted, true)) return status;
      TRY(DeleteVeth(slot));
      deadline += kStaleInterfaceWait;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status HostLink::DeleteVeth(const Slot& slot) {
  NetlinkBatch batch;
  batch.Begin(RTM_DELLINK, 0, Link(slot.interface_index()),
              "cannot remove the network interface of a dead sandbox");
  return GoneIsFine(netlink_.Run(batch));
}

Status HostLink::TakeDown(const Slot& slot) {
  NetlinkBatch batch;
  ifinfomsg down = Link(slot.interface_index());
  down.ifi_change = IFF_UP;
  batch.Begin(RTM_SETLINK, 0, down, "cannot take the network interface of a sandbox down");
  return GoneIsFine(netlink_.Run(batch));
}

Status HostLink::Settle(const Slot& slot) {
  // Asked about a link, the kernel first does what it has put off for it (Linux 6.8 and later).
  NetlinkBatch batch;
  batch.Begin(RTM_GETLINK, 0, Link(slot.interface_index()),
              "cannot see the sandbox's network interface");
  batch.AddU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  return netlink_.Run(batch);
}

Status ConfigureLoopback() {
  TRY_ASSIGN(Netlink netlink, Netlink::Open());
  NetlinkBatch batch;
  AddUp(batch, kLoopbackIndex, "cannot bring the loopback up");
  return netlink.Run(batch);
}

Status ConfigureInside(const InsideAddress& address) {
  TRY_ASSIGN(Netlink netlink, Netlink::Open());
  NetlinkBatch batch;
  AddUp(batch, kLoopbackIndex, "cannot bring the loopback up");
  AddNoIpv6(batch, kInsideIndex);
  AddUp(batch, kInsideIndex, "cannot bring eth0 up");
  AddAddress(batch, kInsideIndex, address.sandbox, address.host, "cannot give eth0 its address");
  batch.Begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL,
              rtmsg{.rtm_family = AF_INET,
                    .rtm_table = RT_TABLE_MAIN,
                    .rtm_protocol = RTPROT_BOOT,
                    .rtm_scope = RT_SCOPE_UNIVERSE,
                    .rtm_type = RTN_UNICAST},
              "cannot set the default route");
  batch.AddIpv4(RTA_GATEWAY, address.host);
  batch.AddU32(RTA_OIF, kInsideIndex);
  return netlink.Run(batch);
}

}  // namespace caisson::engine
