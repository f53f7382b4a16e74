// Which model answers the sessions of whom.
#pragma once

#include <map>
#include <string>

#include "base/config.h"
#include "store/transaction.h"

namespace caisson::session {

// The setting tier_models, by tier; errors name what is wrong.
Result<std::map<std::string, std::string>> ParseTierModels(const std::string& setting);
// The one that a user's sessions have, whatever they ask for; "" = they choose.
Result<std::string> TierModelOf(store::Transaction& tx, const Config& config,
                                const std::string& owner_id);

}  // namespace caisson::session
