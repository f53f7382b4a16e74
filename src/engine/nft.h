// The firewall of all sandboxes of one server: one nftables table, loaded once at engine start. No
// rule is added per sandbox: the rules speak of the interfaces' common prefix, and look up in sets
// what a sandbox with rules of its own may reach (firewall.h fills them).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/slot.h"

namespace caisson::engine {

// The sets of the table, keyed by the sandbox's address.
inline constexpr const char* kDeniedSet = "denied";      // sandbox . range it may not reach
inline constexpr const char* kAdmittedSet = "admitted";  // sandbox . address it may reach after all
inline constexpr const char* kNamedSet = "named";        // sandboxes whose names are filtered
inline constexpr const char* kUsedSet = "used";  // those that may have connections (firewall.h)

// Of the resolver (resolver.h): where queries of sandboxes in kNamedSet arrive, and all others.
inline constexpr int kFilteredDnsPort = 5301;
inline constexpr int kOpenDnsPort = 5300;
inline constexpr int kRelayPort = 5302;

// A sandbox that is there when the table is loaded.
struct Resident {
  uint32_t address = 0;
  Egress egress;
};

struct NftRules {
  std::string table;               // NftTableName()
  std::string interface_prefix;    // InterfacePrefix()
  Cidr network;                    // the addresses of all sandboxes
  std::vector<Cidr> never;         // what the operator lets nobody reach
  int64_t max_connections = 4096;  // open at once per sandbox; the host's table is finite
  int log_group = 0;               // LogGroup()
  std::vector<Resident> residents;
};

std::string NftTableName(std::string_view server_tag);  // "caisson_1a2b3c4d"
// The group of the kernel's packet log to which refused packets go: one per server.
int LogGroup(std::string_view server_tag);

// The text for `nft -f -`: replaces the table in one transaction. Touches nothing outside of it.
std::string RenderNftRules(const NftRules& rules);
// Where connections of sandboxes are led to.
struct Redirections {
  uint32_t resolver = 0;  // DNS
  // All TCP that is allowed, to the relay at this address of the host (relay.h); nothing else gets
  // out then. 0 = straight out.
  uint32_t relay = 0;
};
// The text that puts them into force; until then DNS leads nowhere.
std::string RenderRedirections(const NftRules& rules, const Redirections& redirections);
// The text that removes the table if it is there.
std::string RenderNftRemoval(const std::string& table);

// Runs `nft -f -` on the text, in the caller's network namespace. The error carries nft's words.
Status RunNft(std::string_view text, std::chrono::milliseconds timeout = std::chrono::seconds(10));
// What `nft ARGUMENT...` prints, e.g. {"list", "ruleset"}.
Result<std::string> ReadNft(std::initializer_list<const char*> arguments,
                            std::chrono::milliseconds timeout = std::chrono::seconds(10));

}  // namespace caisson::engine
