// rtnetlink by hand: builds requests, sends several in one system call, reads the answers.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
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
  void Add(uint16_t attribute, const void* data, size_t size);
  void AddU32(uint16_t attribute, uint32_t value) { Add(attribute, &value, sizeof value); }
  void AddU8(uint16_t attribute, uint8_t value) { Add(attribute, &value, sizeof value); }
  void AddText(uint16_t attribute, std::string_view text);  // with the final zero
  // An IPv4 address in host byte order.
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

class Netlink {
 public:
  // Bound to the network namespace the process is in now, whatever it enters later.
  static Result<Netlink> Open();

  // Sends the batch and waits (at most two seconds) for every answer. The kernel carries out each
  // request whether or not an earlier one failed; the first failure is returned, its errno too.
  Status Run(NetlinkBatch& batch);

 private:
  explicit Netlink(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  uint32_t next_sequence_ = 1;
};

}  // namespace caisson::engine
