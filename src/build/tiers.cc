#include "build/tiers.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace caisson::build {
namespace {

constexpr int64_t kMost = 1'000'000;

bool IsName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

Result<Tier> ParseTier(std::string_view text) {
  size_t equals = text.find('=');
  Tier tier{.name = std::string(Trim(text.substr(0, equals)))};
  if (equals == text.npos || !IsName(tier.name))
    return Fail(Code::kInvalidArgument, "build_tiers: \"{}\" is not NAME=NUMBERS", ToUtf8(text));
  std::vector<std::string_view> numbers = Split(text.substr(equals + 1), '/');
  constexpr std::array kFields = {&Tier::per_user, &Tier::per_project, &Tier::per_day,
                                  &Tier::iterations, &Tier::boost};
  if (numbers.size() != kFields.size())
    return Fail(Code::kInvalidArgument, "build_tiers: {} must have {} numbers, not {}", tier.name,
                kFields.size(), numbers.size());
  for (size_t i = 0; i < kFields.size(); ++i) {
    auto number = ParseInt<int64_t>(Trim(numbers[i]));
    if (!number || *number < 0 || *number > kMost)
      return Fail(Code::kInvalidArgument, "build_tiers: \"{}\" of {} is no number from 0 to {}",
                  ToUtf8(numbers[i]), tier.name, kMost);
    tier.*kFields[i] = *number;
  }
  return tier;
}

}  // namespace

Result<std::map<std::string, Tier>> ParseTiers(const Config& config) {
  std::map<std::string, Tier> tiers;
  for (std::string_view part : Split(config.build_tiers, ',')) {
    TRY_ASSIGN(Tier tier, ParseTier(Trim(part)));
    std::string name = tier.name;
    if (!tiers.emplace(name, std::move(tier)).second)
      return Fail(Code::kInvalidArgument, "build_tiers: {} is there twice", name);
  }
  if (!tiers.contains(config.build_tier))
    return Fail(Code::kInvalidArgument, "build_tier: build_tiers has no \"{}\"", config.build_tier);
  return tiers;
}

Time NextDay(Time now) { return std::chrono::floor<std::chrono::days>(now) + std::chrono::days(1); }

}  // namespace caisson::build
