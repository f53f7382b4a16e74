// Netlink by hand: builds requests, sends several in one system call, reads the answers.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// A batch of requests, each answered by the kernel in order. Attributes are appended to the request
// begun last; Nest()/EndNest() bracket attributes inside an attribute.
class NetlinkBatch {
 public:
  // Begins a request: `type` RTM_*, `flags` NLM_F_* (REQUEST and ACK are added), `header` its fixed
  // part (ifinfomsg, ifaddrmsg, rtmsg). `doing` (a literal) begins the error message if it fails;
  // "" = the failure of this request does not matter.
  template <class Header>
  void Begin(uint16_t type, uint16_t flags, const Header& header, std::string_view doing) {
    BeginRaw(type, flags, &header, sizeof header, doing);
  }
  // A message that frames others (the beginning and end of a transaction) and is not answered
  // unless it fails.
  template <class Header>
  void Frame(uint16_t type, const Header& header) {
    BeginRaw(type, 0, &header, sizeof header, "");
    doings_.pop_back();
    Current()->nlmsg_flags = NLM_F_REQUEST;
    Current()->nlmsg_seq = 0;
  }
  void Add(uint16_t attribute, const void* data, size_t size);
  void AddU32(uint16_t attribute, uint32_t value) { Add(attribute, &value, sizeof value); }
  void AddU8(uint16_t attribute, uint8_t value) { Add(attribute, &value, sizeof value); }
  void AddText(uint16_t attribute, std::string_view text);  // with the final zero
  // Netfilter's numbers, an IPv4 address among them, are in network byte order; given in the
  // host's.
  void AddIpv4(uint16_t attribute, uint32_t address);
  void Nest(uint16_t attribute);
  void EndNest();
  // Raw bytes inside a nest (VETH_INFO_PEER begins with an ifinfomsg without attribute header).
  void AddRaw(const void* data, size_t size);

 private:
  friend class Netlink;
  void BeginRaw(uint16_t type, uint16_t flags, const void* header, size_t size,
                std::string_view doing);
  nlmsghdr* Current();
  void Append(const void* data, size_t size);

  std::vector<char> bytes_;
  size_t current_ = 0;                    // where the request begun last starts
  std::vector<size_t> nests_;             // where the open nests start
  std::vector<std::string_view> doings_;  // by sequence number - 1
};

// The attributes of a message (or inside a nest), by type; those of another type are skipped.
class NetlinkAttributes {
 public:
  NetlinkAttributes(const void* data, size_t size);
  // The bytes of an attribute; empty if it is missing.
  std::string_view Get(uint16_t type) const;
  NetlinkAttributes Nest(uint16_t type) const;
  // In network byte order on the wire; 0 if it is missing or shorter.
  uint32_t GetU32(uint16_t type) const;
  uint16_t GetU16(uint16_t type) const;
  uint8_t GetU8(uint16_t type) const;

 private:
  std::string_view bytes_;
};

class Netlink {
 public:
  // Bound to the network namespace the process is in now, whatever it enters later.
  static Result<Netlink> Open(int protocol = NETLINK_ROUTE);

  // Sends the batch and waits (at most two seconds) for every answer. The kernel carries out each
  // request whether or not an earlier one failed; the first failure is returned, its errno too.
  Status Run(NetlinkBatch& batch);
  // Sends one request for a list (NLM_F_DUMP) and calls `each` for every message of the answer.
  Status Dump(NetlinkBatch& request, const std::function<void(const nlmsghdr&)>& each);
  // For messages that come by themselves: the socket, to be waited for.
  int fd() const { return fd_.get(); }

 private:
  explicit Netlink(UniqueFd fd) : fd_(std::move(fd)) {}
  // Gives every message its sequence number and sends all; the number of the first.
  Result<uint32_t> SendAll(NetlinkBatch& batch);
  UniqueFd fd_;
  uint32_t next_sequence_ = 1;
};

}  // namespace caisson::engine
