// IPv4 addresses and networks, as numbers in host byte order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson {

struct Cidr {
  uint32_t base = 0;  // host bits zero
  int prefix = 0;
  uint64_t size() const { return uint64_t{1} << (32 - prefix); }
  bool Contains(uint32_t address) const { return address - base < size(); }
};

// "198.18.0.0/15"
Result<Cidr> ParseCidr(std::string_view text);
// Networks and single addresses, separated by commas; "" = none.
Result<std::vector<Cidr>> ParseCidrs(std::string_view text);
// "198.18.0.1"
std::string FormatIpv4(uint32_t address);

}  // namespace caisson
