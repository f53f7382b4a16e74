#include "session/tier_models.h"

#include "base/text.h"
#include "store/account_rows.h"

namespace caisson::session {

Result<std::map<std::string, std::string>> ParseTierModels(const std::string& setting) {
  std::map<std::string, std::string> models;
  if (Trim(setting).empty()) return models;
  for (std::string_view part : Split(setting, ',')) {
    size_t equals = part.find('=');
    std::string tier(Trim(part.substr(0, equals)));
    std::string model(equals == part.npos ? "" : Trim(part.substr(equals + 1)));
    if (tier.empty() || model.empty())
      return Fail(Code::kInvalidArgument, "tier_models: \"{}\" is not TIER=MODEL",
                  ToUtf8(Trim(part)));
    if (!models.emplace(tier, std::move(model)).second)
      return Fail(Code::kInvalidArgument, "tier_models: {} is there twice", tier);
  }
  return models;
}

Result<std::string> TierModelOf(store::Transaction& tx, const Config& config,
                                const std::string& owner_id) {
  TRY_ASSIGN(auto models, ParseTierModels(config.tier_models));
  if (models.empty()) return "";
  TRY_ASSIGN(auto user, tx.Get<store::UserRow>(owner_id));
  auto found = models.find(user && !user->tier.empty() ? user->tier : config.build_tier);
  return found == models.end() ? "" : found->second;
}

}  // namespace caisson::session
