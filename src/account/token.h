// Access tokens of logins: JSON Web Tokens, signed with the server's secret (HS256).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace caisson::account {

struct AccessClaims {
  std::string user_id;
  std::string login_id;
  Time expires_at;
};

std::string SignAccess(std::string_view secret, const AccessClaims& claims);
// Nothing if it was not signed with this secret, or is over.
std::optional<AccessClaims> VerifyAccess(std::string_view secret, std::string_view token, Time now);

// What a page must send in X-CSRF-Token. Derived from the login, so a cookie that somebody else
// has planted is no valid one.
std::string CsrfToken(std::string_view secret, std::string_view login_id);

}  // namespace caisson::account
