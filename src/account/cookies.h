// The cookies of a login, as a browser sends them with every request to this server.
#pragma once

#include <string>
#include <string_view>

#include "account/accounts.h"
#include "http/message.h"

namespace caisson::account {

inline constexpr std::string_view kAccessCookie = "caisson_access";
inline constexpr std::string_view kRefreshCookie = "caisson_refresh";
inline constexpr std::string_view kCsrfCookie = "caisson_csrf";

// The value of a cookie, "" if there is none.
std::string CookieOf(const http::RequestHead& request, std::string_view name);
bool ChangesState(std::string_view method);

// Whether the X-CSRF-Token header and the cookie are both the token of this login.
bool HasCsrfToken(const http::RequestHead& request, const Accounts& accounts,
                  std::string_view login_id);
inline constexpr std::string_view kNoCsrfToken =
    "send the value of the cookie caisson_csrf in the X-CSRF-Token header";

// The value of `Authorization: Bearer`, "" if there is none.
std::string_view BearerOf(const http::RequestHead& request);

}  // namespace caisson::account
