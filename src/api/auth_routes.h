// Logins of the page: cookies, their renewal and their end.
#pragma once

#include "account/accounts.h"
#include "api/frame.h"

namespace caisson::api {

// All outlive the frame.
void AddAuthRoutes(Frame& frame, account::Accounts& accounts, const Config& config);

void AddCookie(const Call& call, http::Response& response, std::string_view name,
               std::string_view value, std::string_view path, int64_t seconds, bool http_only);
// The three cookies of a login.
void SetLoginCookies(const Config& config, Call& call, http::Response& response,
                     const account::LoginTokens& tokens);

}  // namespace caisson::api
