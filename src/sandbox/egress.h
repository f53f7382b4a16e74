// What a sandbox may reach, as clients ask for it, against what the engine can enforce.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::sandbox {

// A block of addresses; a single address is a block of one.
struct Cidr {
  bool v6 = false;
  std::string address;  // 4 or 16 raw bytes; bits after the prefix are zero
  int prefix = 0;

  bool Contains(const Cidr& other) const;
};
// "10.0.0.0/8", "1.1.1.1", "2001:db8::/32"; nothing if it is neither an address nor a block.
std::optional<Cidr> ParseCidr(std::string_view text);

// "example.com" or "*.example.com".
bool IsDomainPattern(std::string_view text);

struct EgressRules {
  bool internet = true;            // false: the same as denying 0.0.0.0/0
  std::vector<std::string> allow;  // addresses, blocks, domain patterns; wins over deny
  std::vector<std::string> deny;   // addresses and blocks
};

// Whether the sandbox gets the internet (true) or only its loopback (false). Private networks, the
// host and other sandboxes are never reachable, so rules that deny only those are already kept.
// kInvalidArgument: a rule makes no sense. kUnimplemented: the rules make sense, but they need a
// filter that does not exist yet.
// SECURITY: never answers true or false for rules that would then not be enforced.
Result<bool> DecideEgress(const EgressRules& rules);

}  // namespace caisson::sandbox
