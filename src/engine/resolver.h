// The resolver of sandboxes: a process without any rights that forwards their DNS queries to the
// host's nameservers. What sandboxes send is parsed here and nowhere else.
//
// Two services, told apart by port (nft.h leads each sandbox to one): the open one answers every
// name; the filtered one knows each sandbox by its address and answers only names its rules allow,
// after the engine has admitted their addresses.
//
// It talks to the engine over one SOCK_SEQPACKET socket, and ends when that closes:
//   engine -> resolver   {"op": "policy", "sandbox": address, "egress": {...}}
//                        {"op": "forget", "sandbox": address}
//                        {"op": "admitted", "call": n, "ok": bool}
//   resolver -> engine   {"op": "admit", "call": n, "sandbox": address, "name": text,
//                         "addresses": [[address, ttl], ...]}
//                        {"op": "refused", "sandbox": address, "name": text}
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

inline constexpr const char* kResolvConf = "/etc/resolv.conf";

struct Nameserver {
  sockaddr_storage address{};
  socklen_t size = 0;
};
// "10.0.0.1", "::1", "10.0.0.1:5353", "[::1]:5353".
Result<Nameserver> ParseNameserver(std::string_view text);
// The setting `dns` (several, separated by commas) if it is given, else every nameserver of the
// resolv.conf.
Result<std::vector<Nameserver>> FindNameservers(const std::string& setting,
                                                const std::string& resolv_conf);

// Listening, bound to the address sandboxes are led to.
struct ResolverSockets {
  UniqueFd open_udp, open_tcp, filtered_udp, filtered_tcp;
};

struct ResolverSettings {
  std::vector<Nameserver> nameservers;
  int64_t queries_per_second = 200;  // of one sandbox
};

// The main function of the process; the sockets stay the caller's.
int RunResolver(const ResolverSettings& settings, const ResolverSockets& sockets, int engine);

}  // namespace caisson::engine
