#include "engine/socket_filter.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>

namespace caisson::engine {
namespace {

// A kind of socket as one number; AddKind() puts together the same of the call's arguments.
constexpr uint32_t Kind(uint32_t family, uint32_t type, uint32_t protocol) {
  return family << 24 | type << 16 | protocol;
}
constexpr uint32_t kMostFamily = 0xff;
constexpr uint32_t kTypeMask = 0xf;  // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
constexpr uint32_t kMostProtocol = 0xffff;

constexpr std::array kKinds = {
    Kind(AF_INET, SOCK_STREAM, 0),
    Kind(AF_INET, SOCK_STREAM, IPPROTO_TCP),
    Kind(AF_INET, SOCK_DGRAM, 0),
    Kind(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
    Kind(AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
    Kind(AF_INET, SOCK_RAW, IPPROTO_ICMP),
    Kind(AF_INET, SOCK_RAW, IPPROTO_TCP),
    Kind(AF_INET, SOCK_RAW, IPPROTO_UDP),
    Kind(AF_INET6, SOCK_STREAM, 0),
    Kind(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
    Kind(AF_INET6, SOCK_DGRAM, 0),
    Kind(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
    Kind(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6),
    Kind(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6),
    Kind(AF_INET6, SOCK_RAW, IPPROTO_TCP),
    Kind(AF_INET6, SOCK_RAW, IPPROTO_UDP),
    // Links, addresses, routes; and what `ss` asks. The generic family, audit and the events of
    // devices do without: those who want them know kernels that have none.
    Kind(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
    Kind(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE),
    Kind(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG),
    Kind(AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG),
};

class Writer {
 public:
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  // Arguments have 64 bits; of these, which are int, the kernel looks at the lower half only.
  void LoadArgument(size_t index) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    Load(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
  }
  void Calculate(uint16_t operation, uint32_t value) { Add(BPF_ALU | BPF_K | operation, value); }
  // A = argument 0 to 2 as Kind(); those that are too large have been refused.
  void LoadKind() {
    LoadArgument(0);
    Calculate(BPF_LSH, 24);
    Add(BPF_MISC | BPF_TAX, 0);
    LoadArgument(1);
    Calculate(BPF_AND, kTypeMask);
    Calculate(BPF_LSH, 16);
    Add(BPF_ALU | BPF_OR | BPF_X, 0);
    Add(BPF_MISC | BPF_TAX, 0);
    LoadArgument(2);
    Add(BPF_ALU | BPF_OR | BPF_X, 0);
  }
  // Does the next instruction only if it holds (or only if not).
  void If(uint16_t comparison, uint32_t value) { Jump(comparison, value, 0, 1); }
  void Unless(uint16_t comparison, uint32_t value) { Jump(comparison, value, 1, 0); }
  void Allow() { Add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  void Refuse(uint32_t error) { Add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error); }
  std::vector<sock_filter> Take() { return std::move(program_); }

 private:
  void Add(int code, uint32_t value) {
    program_.push_back({static_cast<uint16_t>(code), 0, 0, value});
  }
  void Jump(uint16_t comparison, uint32_t value, uint8_t if_true, uint8_t if_false) {
    program_.push_back(
        {static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), if_true, if_false, value});
  }
  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<sock_filter> SocketFilter(bool nesting) {
  Writer writer;
  writer.Load(offsetof(seccomp_data, nr));
  writer.Unless(BPF_JEQ, SYS_socket);
  writer.Allow();
  writer.LoadArgument(0);
  writer.If(BPF_JGT, kMostFamily);
  writer.Refuse(EAFNOSUPPORT);
  // Between processes of the sandbox; this family has no protocols and no modules.
  writer.If(BPF_JEQ, AF_UNIX);
  writer.Allow();
  if (nesting) {
    writer.If(BPF_JEQ, AF_NETLINK);
    writer.Allow();
  }
  writer.LoadArgument(2);
  writer.If(BPF_JGT, kMostProtocol);
  writer.Refuse(EPROTONOSUPPORT);
  writer.LoadKind();
  for (uint32_t kind : kKinds) {
    writer.If(BPF_JEQ, kind);
    writer.Allow();
  }
  writer.LoadArgument(0);
  for (uint32_t known : {AF_INET, AF_INET6, AF_NETLINK}) {
    writer.If(BPF_JEQ, known);
    writer.Refuse(EPROTONOSUPPORT);
  }
  writer.Refuse(EAFNOSUPPORT);
  return writer.Take();
}

}  // namespace caisson::engine
