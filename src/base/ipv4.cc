#include "base/ipv4.h"

#include <arpa/inet.h>

#include "base/text.h"

namespace caisson {

Result<Cidr> ParseCidr(std::string_view text) {
  size_t slash = text.find('/');
  auto prefix =
      slash == std::string_view::npos ? std::nullopt : ParseInt<int>(text.substr(slash + 1));
  in_addr address{};
  if (!prefix || *prefix < 0 || *prefix > 32 ||
      inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &address) != 1)
    return Fail(Code::kInvalidArgument, "'{}' is not an IPv4 network such as 198.18.0.0/15", text);
  uint32_t mask = *prefix == 0 ? 0 : ~uint32_t{0} << (32 - *prefix);
  return Cidr{ntohl(address.s_addr) & mask, *prefix};
}

Result<std::vector<Cidr>> ParseCidrs(std::string_view text) {
  std::vector<Cidr> networks;
  if (Trim(text).empty()) return networks;
  for (std::string_view part : Split(text, ',')) {
    std::string one(Trim(part));
    if (one.find('/') == std::string::npos) one += "/32";
    TRY_ASSIGN(Cidr network, ParseCidr(one));
    networks.push_back(network);
  }
  return networks;
}

std::string FormatIpv4(uint32_t a) {
  return fmt::format("{}.{}.{}.{}", a >> 24, (a >> 16) & 255, (a >> 8) & 255, a & 255);
}

}  // namespace caisson
