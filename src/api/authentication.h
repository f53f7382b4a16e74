// Who sends a request to /api/v1: by X-API-KEY, by Authorization: Bearer, or by the cookies of a
// login.
#pragma once

#include <string>
#include <string_view>

#include "account/accounts.h"
#include "account/cookies.h"
#include "api/frame.h"
#include "api/refusal.h"

namespace caisson::api {

using account::ChangesState;
using account::CookieOf;
using account::kAccessCookie;
using account::kCsrfCookie;
using account::kRefreshCookie;

// 401 if nobody is known. 403 if it came by cookies, changes state, and is without the CSRF token.
Checked<Principal> Identify(const http::RequestHead& request, const account::Accounts& accounts);
// 403 unless the X-CSRF-Token header and the cookie are both the token of this login.
Checked<void> CheckCsrf(const http::RequestHead& request, const account::Accounts& accounts,
                        std::string_view login_id);
// 403 if the role is below what the operation needs.
Checked<void> CheckAccess(const Principal& who, Access access);

}  // namespace caisson::api
