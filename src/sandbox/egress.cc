#include "sandbox/egress.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace caisson::sandbox {
namespace {

// Blocks that no sandbox reaches, whatever its rules say: the engine's firewall drops them
// (engine/nft.cc), and IPv6 altogether.
constexpr std::array<std::string_view, 8> kNeverReachable = {
    "0.0.0.0/8",      "10.0.0.0/8",    "100.64.0.0/10",  "127.0.0.0/8",
    "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3"};

bool NeverReachable(const Cidr& block) {
  return block.v6 || std::any_of(kNeverReachable.begin(), kNeverReachable.end(),
                                 [&](auto one) { return ParseCidr(one)->Contains(block); });
}

bool IsEverything(const Cidr& block) { return !block.v6 && block.prefix == 0; }

void ClearAfter(std::string& address, int prefix) {
  for (size_t i = 0; i < address.size(); ++i) {
    int keep = std::clamp(prefix - static_cast<int>(i) * 8, 0, 8);
    address[i] = static_cast<char>(address[i] & static_cast<char>(0xff00 >> keep));
  }
}

bool IsLabel(std::string_view label) {
  if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-')
    return false;
  return std::all_of(label.begin(), label.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

}  // namespace

bool Cidr::Contains(const Cidr& other) const {
  if (v6 != other.v6 || other.prefix < prefix) return false;
  std::string start = other.address;
  ClearAfter(start, prefix);
  return start == address;
}

std::optional<Cidr> ParseCidr(std::string_view text) {
  size_t slash = text.find('/');
  std::string address(text.substr(0, slash));
  Cidr block;
  std::array<char, 16> raw{};
  if (inet_pton(AF_INET, address.c_str(), raw.data()) == 1)
    block.address.assign(raw.data(), 4);
  else if (inet_pton(AF_INET6, address.c_str(), raw.data()) == 1)
    block.address.assign(raw.data(), 16);
  else
    return std::nullopt;
  block.v6 = block.address.size() == 16;
  int bits = static_cast<int>(block.address.size()) * 8;
  block.prefix = bits;
  if (slash != std::string_view::npos) {
    auto prefix = ParseInt<int>(text.substr(slash + 1));
    if (!prefix || *prefix < 0 || *prefix > bits) return std::nullopt;
    block.prefix = *prefix;
  }
  ClearAfter(block.address, block.prefix);
  return block;
}

bool IsDomainPattern(std::string_view text) {
  if (text.starts_with("*.")) text.remove_prefix(2);
  if (text.size() > 253 || text.find('.') == std::string_view::npos) return false;
  auto labels = Split(text, '.');
  // A last label of digits only would be a broken IP address.
  return std::all_of(labels.begin(), labels.end(), IsLabel) &&
         labels.back().find_first_not_of("0123456789") != std::string_view::npos;
}

Result<bool> DecideEgress(const EgressRules& rules) {
  bool deny_all = !rules.internet, denies_public = false;
  for (const std::string& text : rules.deny) {
    auto block = ParseCidr(text);
    if (!block)
      return Fail(Code::kInvalidArgument,
                  "the denied destination '{}' is not an IP address or CIDR block", text);
    deny_all = deny_all || IsEverything(*block);
    denies_public = denies_public || !NeverReachable(*block);
  }
  bool allow_all = false, allows_public = false;
  for (const std::string& text : rules.allow) {
    auto block = ParseCidr(text);
    if (!block && !IsDomainPattern(text))
      return Fail(
          Code::kInvalidArgument,
          "the allowed destination '{}' is not an IP address, a CIDR block or a domain name", text);
    if (!block && !deny_all)
      return Fail(Code::kInvalidArgument,
                  "the domain '{}' can only be allowed when everything else is denied (0.0.0.0/0)",
                  text);
    allow_all = allow_all || (block && IsEverything(*block));
    allows_public = allows_public || !block || !NeverReachable(*block);
  }
  if (allow_all) return true;
  if (deny_all && !allows_public) return false;
  if (!deny_all && !denies_public) return true;
  return Fail(Code::kUnimplemented,
              "this server cannot filter outgoing traffic by address or domain yet: it can give a "
              "sandbox the whole internet, or nothing of it");
}

}  // namespace caisson::sandbox
