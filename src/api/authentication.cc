#include "api/authentication.h"

namespace caisson::api {
namespace {

Principal ToPrincipal(account::Identity identity) {
  return {.user_id = std::move(identity.user_id),
          .key_id = std::move(identity.key_id),
          .role = std::move(identity.role),
          .login_id = std::move(identity.login_id)};
}

auto Unknown(std::string_view why) { return Refuse(401, "unauthenticated", "{}", why); }

}  // namespace

Checked<Principal> Identify(const http::RequestHead& request, const account::Accounts& accounts) {
  std::string_view bearer = account::BearerOf(request);
  std::string_view key = request.headers.Value("X-API-KEY");
  if (key.empty()) key = bearer;
  if (!key.empty()) {
    auto identity = accounts.ByKey(key);
    // An access token may come as a bearer too; no page sends that by itself, so no CSRF.
    if (!identity && !bearer.empty()) identity = accounts.ByAccessToken(bearer);
    if (!identity) return Unknown("the API key is not valid");
    return ToPrincipal(std::move(*identity));
  }
  std::string token = CookieOf(request, kAccessCookie);
  if (token.empty())
    return Unknown("say who you are: with an API key in the X-API-KEY header, or by logging in");
  auto identity = accounts.ByAccessToken(token);
  if (!identity) return Unknown("the login is over: renew it with POST /api/v1/auth/refresh");
  if (ChangesState(request.method))
    if (auto checked = CheckCsrf(request, accounts, identity->login_id); !checked)
      return tl::unexpected(checked.error());
  return ToPrincipal(std::move(*identity));
}

Checked<void> CheckCsrf(const http::RequestHead& request, const account::Accounts& accounts,
                        std::string_view login_id) {
  if (account::HasCsrfToken(request, accounts, login_id)) return {};
  return Refuse(403, "csrf_failed", "{}", account::kNoCsrfToken);
}

Checked<void> CheckAccess(const Principal& who, Access access) {
  auto rank = [](std::string_view role) {
    return role == "admin" ? Access::kAdmin : role == "member" ? Access::kMember : Access::kViewer;
  };
  if (rank(who.role) >= access) return {};
  return Refuse(403, "permission_denied", "this needs the role {}; yours is {}",
                access == Access::kAdmin ? "admin" : "member", who.role);
}

}  // namespace caisson::api
