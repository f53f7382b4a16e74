// What a sandbox may reach beyond its own loopback: rules as they are written, and what they mean.
// nft.h and firewall.h enforce it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/slot.h"

namespace caisson::engine {

// A block of addresses; a single address is a block of one.
struct Block {
  bool v6 = false;
  std::string address;  // 4 or 16 raw bytes; bits after the prefix are zero
  int prefix = 0;

  bool Contains(const Block& other) const;
  bool everything() const { return prefix == 0; }
};
// "10.0.0.0/8", "1.1.1.1", "2001:db8::/32"; nothing if it is neither an address nor a block.
std::optional<Block> ParseBlock(std::string_view text);

// "example.com" or "*.example.com".
bool IsHostPattern(std::string_view text);
// Whether a name is meant by a pattern: "*.example.com" means every name below it, not itself.
// Upper case and a final dot make no difference.
bool MatchesHost(std::string_view pattern, std::string_view name);

// IPv4 addresses from `first` to `last`, both included, in host byte order.
struct Range {
  uint32_t first = 0;
  uint32_t last = 0;
  bool operator==(const Range&) const = default;
};

// Private, link-local (metadata services of clouds), shared, reserved and multicast ranges, and
// where sandboxes live themselves: never reachable, whatever is allowed.
const std::vector<Cidr>& NotInternet();
bool IsInternet(uint32_t address);

// All rules of a sandbox together, in bytes: they travel in one message.
inline constexpr size_t kMaxEgressBytes = 48 << 10;

// kInvalidArgument with a sentence when a rule makes no sense: a denied destination that is not an
// address, an allowed one that is nothing, a host name while not everything else is denied; and
// when there are too many.
Status CheckEgress(const Egress& egress);

// The rules in the form in which they are enforced. IPv6 needs none: no packet of it ever leaves a
// sandbox (nft.h).
class EgressPolicy {
 public:
  explicit EgressPolicy(const Egress& egress);

  // Nothing of the internet is denied and every name may be asked for: costs nothing to enforce.
  bool open() const { return denied_.empty(); }
  // What is denied and not allowed, sorted, without overlaps.
  const std::vector<Range>& denied() const { return denied_; }
  bool Denies(uint32_t address) const;

  // Everything is denied, so names mean something: only listed ones are resolved.
  bool filters_names() const { return filters_names_; }
  bool AllowsName(std::string_view name) const;

 private:
  std::vector<Range> denied_;
  std::vector<std::string> names_;
  bool filters_names_ = false;
};

}  // namespace caisson::engine
