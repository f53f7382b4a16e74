#include "engine/egress.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/not_internet.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

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

std::string_view WithoutFinalDot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

Range RangeOf(const Block& block) {
  uint32_t first = 0;
  for (char c : block.address) first = first << 8 | static_cast<unsigned char>(c);
  uint32_t rest = block.prefix == 0 ? ~uint32_t{0} : (uint32_t{1} << (32 - block.prefix)) - 1;
  return {first, first | rest};
}

// The IPv4 blocks among the rules, sorted, neighbours and overlaps joined.
std::vector<Range> Join(const std::vector<std::string>& rules) {
  std::vector<Range> ranges, joined;
  for (const std::string& rule : rules)
    if (auto block = ParseBlock(rule); block && !block->v6) ranges.push_back(RangeOf(*block));
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  for (Range range : ranges) {
    if (!joined.empty() && uint64_t{joined.back().last} + 1 >= range.first)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  return joined;
}

// What is in `whole` and not in `holes`; both as Join() leaves them.
std::vector<Range> Subtract(const std::vector<Range>& whole, const std::vector<Range>& holes) {
  std::vector<Range> left;
  for (Range range : whole) {
    uint64_t at = range.first;
    for (Range hole : holes) {
      if (hole.last < at || hole.first > range.last) continue;
      if (hole.first > at) left.push_back({static_cast<uint32_t>(at), hole.first - 1});
      at = uint64_t{hole.last} + 1;
    }
    if (at <= range.last) left.push_back({static_cast<uint32_t>(at), range.last});
  }
  return left;
}

bool DeniesEverything(const Egress& egress) {
  return std::any_of(egress.deny.begin(), egress.deny.end(), [](const std::string& rule) {
    auto block = ParseBlock(rule);
    return block && !block->v6 && block->everything();
  });
}

}  // namespace

bool Block::Contains(const Block& other) const {
  if (v6 != other.v6 || other.prefix < prefix) return false;
  std::string start = other.address;
  ClearAfter(start, prefix);
  return start == address;
}

std::optional<Block> ParseBlock(std::string_view text) {
  size_t slash = text.find('/');
  std::string address(text.substr(0, slash));
  Block block;
  std::array<char, 16> raw{};
  if (inet_pton(AF_INET, address.c_str(), raw.data()) == 1)
    block.address.assign(raw.data(), 4);
  else if (inet_pton(AF_INET6, address.c_str(), raw.data()) == 1)
    block.address.assign(raw.data(), 16);
  else
    return std::nullopt;
  if (address.size() != std::string_view(address.c_str()).size()) return std::nullopt;
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

bool IsHostPattern(std::string_view text) {
  if (text.starts_with("*.")) text.remove_prefix(2);
  text = WithoutFinalDot(text);
  if (text.size() > 253 || text.find('.') == std::string_view::npos) return false;
  auto labels = Split(text, '.');
  // A last label of digits only would be a broken IP address.
  return std::all_of(labels.begin(), labels.end(), IsLabel) &&
         labels.back().find_first_not_of("0123456789") != std::string_view::npos;
}

bool MatchesHost(std::string_view pattern, std::string_view name) {
  pattern = WithoutFinalDot(pattern);
  name = WithoutFinalDot(name);
  if (!pattern.starts_with("*.")) return EqualsIgnoreCase(pattern, name);
  pattern.remove_prefix(1);  // ".example.com"
  return name.size() > pattern.size() &&
         EqualsIgnoreCase(name.substr(name.size() - pattern.size()), pattern);
}

const std::vector<Cidr>& NotInternet() {
  static const std::vector<Cidr> blocks = [] {
    std::vector<Cidr> parsed;
    for (const char* block : kNotInternet) parsed.push_back(*ParseCidr(block));
    return parsed;
  }();
  return blocks;
}

bool IsInternet(uint32_t address) {
  return std::none_of(NotInternet().begin(), NotInternet().end(),
                      [&](const Cidr& block) { return block.Contains(address); });
}

Status CheckEgress(const Egress& egress) {
  size_t size = 0;
  for (const auto* rules : {&egress.allow, &egress.deny})
    for (const std::string& rule : *rules) size += rule.size() + 4;
  if (size > kMaxEgressBytes)
    return Fail(Code::kInvalidArgument,
                "the network rules are too long: {} bytes, at most {} are allowed", size,
                kMaxEgressBytes);
  for (const std::string& rule : egress.deny)
    if (!ParseBlock(rule))
      return Fail(Code::kInvalidArgument,
                  "the denied destination '{}' is not an IP address or CIDR block", rule);
  bool deny_all = DeniesEverything(egress);
  for (const std::string& rule : egress.allow) {
    if (ParseBlock(rule)) continue;
    if (!IsHostPattern(rule))
      return Fail(
          Code::kInvalidArgument,
          "the allowed destination '{}' is not an IP address, a CIDR block or a domain name", rule);
    if (!deny_all)
      return Fail(Code::kInvalidArgument,
                  "the domain '{}' can only be allowed when everything else is denied (0.0.0.0/0)",
                  rule);
  }
  return {};
}

EgressPolicy::EgressPolicy(const Egress& egress)
    : denied_(Subtract(Join(egress.deny), Join(egress.allow))) {
  for (const std::string& rule : egress.allow)
    if (!ParseBlock(rule)) names_.push_back(rule);
  // Allowing everything takes the denial back, and with it the meaning of names.
  filters_names_ = DeniesEverything(egress) && !denied_.empty();
}

bool EgressPolicy::Denies(uint32_t address) const {
  auto after = std::upper_bound(denied_.begin(), denied_.end(), address,
                                [](uint32_t a, const Range& range) { return a < range.first; });
  return after != denied_.begin() && address <= std::prev(after)->last;
}

bool EgressPolicy::AllowsName(std::string_view name) const {
  return !filters_names_ ||
         std::any_of(names_.begin(), names_.end(),
                     [&](const std::string& pattern) { return MatchesHost(pattern, name); });
}

}  // namespace caisson::engine
