#include "git/internet.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include "base/not_internet.h"

namespace caisson::git {
namespace {

using asio::ip::address;
using asio::ip::address_v4;
using asio::ip::address_v6;

bool InBlock(const address_v6& one, const char* block) {
  auto network = asio::ip::make_network_v6(block);
  return asio::ip::make_network_v6(one, network.prefix_length()).canonical() == network;
}

bool IsInternet(const address_v4& one) {
  return std::none_of(kNotInternet.begin(), kNotInternet.end(), [&](const char* block) {
    auto network = asio::ip::make_network_v4(block);
    return asio::ip::make_network_v4(one, network.prefix_length()).canonical() == network;
  });
}

// SECURITY: of IPv6 a list of what is good, not of what is bad: global unicast, without the ranges
// that carry an IPv4 address to somebody who unpacks it.
bool IsInternet(const address_v6& one) {
  return InBlock(one, "2000::/3") && !InBlock(one, "2002::/16") && !InBlock(one, "2001::/32");
}

address AddressOf(const sockaddr& one) {
  if (one.sa_family == AF_INET)
    return address_v4(ntohl(reinterpret_cast<const sockaddr_in&>(one).sin_addr.s_addr));
  address_v6::bytes_type bytes;
  const auto& raw = reinterpret_cast<const sockaddr_in6&>(one).sin6_addr.s6_addr;
  std::copy(std::begin(raw), std::end(raw), bytes.begin());
  return address_v6(bytes);
}

// A public address of this machine leads to what listens for its own network only.
bool IsOwn(const address& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return true;
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (; list; list = list->ifa_next) {
    if (!list->ifa_addr) continue;
    int family = list->ifa_addr->sa_family;
    if ((family == AF_INET || family == AF_INET6) && AddressOf(*list->ifa_addr) == wanted)
      return true;
  }
  return false;
}

}  // namespace

Status CheckInternet(const address& given) {
  // The kernel takes both forms for the same.
  address one = given;
  if (given.is_v6() && given.to_v6().is_v4_mapped())
    one = asio::ip::make_address_v4(asio::ip::v4_mapped, given.to_v6());
  bool good = one.is_v4() ? IsInternet(one.to_v4()) : IsInternet(one.to_v6());
  if (good && !IsOwn(one)) return {};
  return Fail(Code::kFailedPrecondition,
              "its address is not one of the internet; only the hosts of github_url and "
              "git_private_hosts may be elsewhere");
}

}  // namespace caisson::git
