#include "engine/firewall.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#include "engine/nft.h"

namespace caisson::engine {
namespace {

// An attribute's length has 16 bits, so long lists go into several messages of one transaction.
constexpr size_t kElementsPerMessage = 500;

constexpr size_t kCutsPerBatch = 64;
constexpr uint32_t kBySource = 1;  // the kernel's CTA_FILTER_F_CTA_IP_SRC

uint16_t Type(int subsystem, int message) {
  return static_cast<uint16_t>(subsystem << 8 | message);
}

nfgenmsg Header(uint8_t family) {
  return {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = 0};
}

struct Pair {
  uint32_t sandbox, address;  // network byte order
};

void AddKey(NetlinkBatch& batch, uint16_t attribute, const void* data, size_t size) {
  batch.Nest(attribute);
  batch.Add(NFTA_DATA_VALUE, data, size);
  batch.EndNest();
}

void AddKey(NetlinkBatch& batch, uint16_t attribute, uint32_t sandbox, uint32_t address) {
  Pair pair{htonl(sandbox), htonl(address)};
  AddKey(batch, attribute, &pair, sizeof pair);
}

template <class Item, class Fn>
void InPortions(const std::vector<Item>& items, Fn fn) {
  for (size_t begin = 0; begin < items.size(); begin += kElementsPerMessage)
    fn(begin, std::min(items.size(), begin + kElementsPerMessage));
}

}  // namespace

Result<Firewall> Firewall::Open(std::string table) {
  TRY_ASSIGN(Netlink netlink, Netlink::Open(NETLINK_NETFILTER));
  return Firewall(std::move(table), std::move(netlink));
}

Status Firewall::Transact(const std::function<void(NetlinkBatch&)>& fill) {
  NetlinkBatch batch;
  nfgenmsg frame = Header(AF_UNSPEC);
  frame.res_id = htons(NFNL_SUBSYS_NFTABLES);
  batch.Frame(NFNL_MSG_BATCH_BEGIN, frame);
  fill(batch);
  batch.Frame(NFNL_MSG_BATCH_END, frame);
  return netlink_.Run(batch);
}

void Firewall::BeginElements(NetlinkBatch& batch, uint16_t type, const char* set) {
  bool add = type == NFT_MSG_NEWSETELEM;
  batch.Begin(Type(NFNL_SUBSYS_NFTABLES, type), add ? NLM_F_CREATE : 0, Header(NFPROTO_INET),
              add                          ? "cannot add to the rules of a sandbox"
              : type == NFT_MSG_GETSETELEM ? "cannot look for the connections of a sandbox"
                                           : "cannot remove rules of a sandbox");
  batch.AddText(NFTA_SET_ELEM_LIST_TABLE, table_);
  batch.AddText(NFTA_SET_ELEM_LIST_SET, set);
  batch.Nest(NFTA_SET_ELEM_LIST_ELEMENTS);
}

void Firewall::AddRanges(NetlinkBatch& batch, uint16_t type, uint32_t sandbox,
                         const std::vector<Range>& ranges) {
  InPortions(ranges, [&](size_t begin, size_t end) {
    BeginElements(batch, type, kDeniedSet);
    for (size_t i = begin; i < end; ++i) {
      batch.Nest(NFTA_LIST_ELEM);
      AddKey(batch, NFTA_SET_ELEM_KEY, sandbox, ranges[i].first);
      AddKey(batch, NFTA_SET_ELEM_KEY_END, sandbox, ranges[i].last);
      batch.EndNest();
    }
    batch.EndNest();
  });
}

void Firewall::AddPairs(NetlinkBatch& batch, uint16_t type, uint32_t sandbox,
                        const std::vector<uint32_t>& addresses) {
  InPortions(addresses, [&](size_t begin, size_t end) {
    BeginElements(batch, type, kAdmittedSet);
    for (size_t i = begin; i < end; ++i) {
      batch.Nest(NFTA_LIST_ELEM);
      AddKey(batch, NFTA_SET_ELEM_KEY, sandbox, addresses[i]);
      batch.EndNest();
    }
    batch.EndNest();
  });
}

void Firewall::AddAddress(NetlinkBatch& batch, uint16_t type, const char* set, uint32_t sandbox) {
  BeginElements(batch, type, set);
  batch.Nest(NFTA_LIST_ELEM);
  uint32_t key = htonl(sandbox);
  AddKey(batch, NFTA_SET_ELEM_KEY, &key, sizeof key);
  batch.EndNest();
  batch.EndNest();
}

Status Firewall::Replace(uint32_t sandbox, const EgressPolicy& before, const EgressPolicy& after) {
  bool same_names = before.filters_names() == after.filters_names();
  if (before.denied() == after.denied() && same_names) return {};
  return Transact([&](NetlinkBatch& batch) {
    AddRanges(batch, NFT_MSG_DELSETELEM, sandbox, before.denied());
    AddRanges(batch, NFT_MSG_NEWSETELEM, sandbox, after.denied());
    if (!same_names)
      AddAddress(batch, after.filters_names() ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM, kNamedSet,
                 sandbox);
  });
}

Status Firewall::Admit(uint32_t sandbox, const std::vector<uint32_t>& addresses) {
  if (addresses.empty()) return {};
  return Transact(
      [&](NetlinkBatch& batch) { AddPairs(batch, NFT_MSG_NEWSETELEM, sandbox, addresses); });
}

Status Firewall::Dismiss(uint32_t sandbox, const std::vector<uint32_t>& addresses) {
  if (addresses.empty()) return {};
  return Transact(
      [&](NetlinkBatch& batch) { AddPairs(batch, NFT_MSG_DELSETELEM, sandbox, addresses); });
}

Status Firewall::Cut(uint32_t sandbox, const std::function<bool(uint32_t)>& denied) {
  return Forget(sandbox, [&](uint32_t source, uint32_t destination) {
    return source == sandbox && denied(destination);
  });
}

Status Firewall::Forget(std::optional<uint32_t> source,
                        const std::function<bool(uint32_t, uint32_t)>& wanted) {
  NetlinkBatch request;
  request.Begin(Type(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET), NLM_F_DUMP, Header(AF_INET),
                "cannot list the connections of sandboxes");
  if (source) {
    // Newer kernels list only those of the sandbox; older ones ignore the wish.
    request.Nest(CTA_TUPLE_ORIG);
    request.Nest(CTA_TUPLE_IP);
    request.AddIpv4(CTA_IP_V4_SRC, *source);
    request.EndNest();
    request.EndNest();
    request.Nest(CTA_FILTER);
    request.AddU32(CTA_FILTER_ORIG_FLAGS, kBySource);
    request.AddU32(CTA_FILTER_REPLY_FLAGS, 0);
    request.EndNest();
  }
  // Each is named to the kernel by the very bytes with which the kernel named it.
  std::vector<std::string> tuples;
  TRY(netlink_.Dump(request, [&](const nlmsghdr& message) {
    constexpr size_t kHead = NLMSG_LENGTH(sizeof(nfgenmsg));
    if (message.nlmsg_len < kHead) return;
    NetlinkAttributes connection(reinterpret_cast<const char*>(&message) + kHead,
                                 message.nlmsg_len - kHead);
    NetlinkAttributes address = connection.Nest(CTA_TUPLE_ORIG).Nest(CTA_TUPLE_IP);
    if (wanted(address.GetU32(CTA_IP_V4_SRC), address.GetU32(CTA_IP_V4_DST)))
      tuples.emplace_back(connection.Get(CTA_TUPLE_ORIG));
  }));
  // Few at a time: their answers wait in the socket's buffer.
  for (size_t begin = 0; begin < tuples.size(); begin += kCutsPerBatch) {
    NetlinkBatch batch;
    for (size_t i = begin; i < std::min(tuples.size(), begin + kCutsPerBatch); ++i) {
      // One that has ended meanwhile is no failure.
      batch.Begin(Type(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE), 0, Header(AF_INET), "");
      batch.Add(CTA_TUPLE_ORIG | NLA_F_NESTED, tuples[i].data(), tuples[i].size());
    }
    TRY(netlink_.Run(batch));
  }
  return {};
}

Result<bool> Firewall::HasConnections(uint32_t sandbox) {
  NetlinkBatch batch;
  AddAddress(batch, NFT_MSG_GETSETELEM, kUsedSet, sandbox);
  Status found = netlink_.Run(batch);
  if (!found && found.error().sys_errno() == ENOENT) return false;
  TRY(std::move(found));
  return true;
}

Status Firewall::ForgetConnections(uint32_t sandbox) {
  TRY(Cut(sandbox, [](uint32_t) { return true; }));
  // Last, so that whoever comes after a crash looks again.
  Status removed = Transact(
      [&](NetlinkBatch& batch) { AddAddress(batch, NFT_MSG_DELSETELEM, kUsedSet, sandbox); });
  if (!removed && removed.error().sys_errno() == ENOENT) return {};
  return removed;
}

Status Firewall::ForgetStrays(const Cidr& network, const std::function<bool(uint32_t)>& has_owner) {
  return Forget({}, [&](uint32_t source, uint32_t) {
    return network.Contains(source) && !has_owner(source);
  });
}

}  // namespace caisson::engine
