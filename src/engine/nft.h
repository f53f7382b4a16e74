// The firewall of all sandboxes of one server: one nftables table, loaded once at engine start. No
// rule is added per sandbox: the rules speak of the interfaces' common prefix.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/slot.h"

namespace caisson::engine {

struct NftRules {
  std::string table;               // NftTableName()
  std::string interface_prefix;    // InterfacePrefix()
  Cidr network;                    // the addresses of all sandboxes
  std::string dns;                 // IPv4 resolver behind kDnsAddress; "" = none
  int64_t max_connections = 4096;  // open at once per sandbox; the host's table is finite
};

std::string NftTableName(std::string_view server_tag);  // "caisson_1a2b3c4d"

// The text for `nft -f -`: replaces the table in one transaction. Touches nothing outside of it.
std::string RenderNftRules(const NftRules& rules);
// The text that removes the table if it is there.
std::string RenderNftRemoval(const std::string& table);

// Runs `nft -f -` on the text, in the caller's network namespace. The error carries nft's words.
Status RunNft(std::string_view text, std::chrono::milliseconds timeout = std::chrono::seconds(10));
// What `nft ARGUMENT...` prints, e.g. {"list", "ruleset"}.
Result<std::string> ReadNft(std::initializer_list<const char*> arguments,
                            std::chrono::milliseconds timeout = std::chrono::seconds(10));

}  // namespace caisson::engine
