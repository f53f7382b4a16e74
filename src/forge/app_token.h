// A GitHub App's credential: it signs a short-lived claim with its key and gets a token for one
// installation, good for an hour.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace caisson::forge {

// The claim (a JWT, RS256) that lasts for the next nine minutes. `key` is the App's private key,
// PEM. kInvalidArgument: it is no RSA key.
Result<std::string> MakeAppClaim(std::string_view key, std::string_view app_id, Time now);

struct AppToken {
  std::string token;
  Time expires_at;

  // Five minutes before its end it is not handed out any more: git may still work with it then.
  bool Fresh(Time now) const {
    return !token.empty() && now + std::chrono::minutes(5) < expires_at;
  }
};
// From GitHub's answer.
Result<AppToken> ReadAppToken(std::string_view body);

}  // namespace caisson::forge
