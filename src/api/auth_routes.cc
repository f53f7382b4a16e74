#include "api/auth_routes.h"

#include <boost/json.hpp>

#include "api/account_codec.h"
#include "api/authentication.h"
#include "api/fields.h"

namespace caisson::api {
namespace {

using account::Accounts;

constexpr std::string_view kLoginSchema = R"({
  "anyOf": [{"title": "Password", "type": "object", "required": ["name", "password"],
             "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 64},
                            "password": {"type": "string", "minLength": 1, "maxLength": 1000}}},
            {"title": "Key", "type": "object", "required": ["api_key"],
             "properties": {"api_key": {"type": "string", "minLength": 1, "maxLength": 1000}}}]})";
constexpr std::string_view kSessionSchema = R"({
  "type": "object", "required": ["user", "csrf_token", "expires_in"],
  "properties": {
    "user": {"$ref": "#/components/schemas/User"},
    "csrf_token": {"type": "string", "description": "send it as X-CSRF-Token"},
    "expires_in": {"type": "integer", "description": "seconds until it has to be renewed"}}})";
constexpr std::string_view kMeSchema = R"({
  "type": "object", "required": ["user", "key_id"],
  "properties": {
    "user": {"$ref": "#/components/schemas/User"},
    "key_id": {"type": ["string", "null"], "description": "the API key; null for a login"}}})";
constexpr std::string_view kPasswordSchema = R"({
  "type": "object", "required": ["new_password"],
  "properties": {
    "current_password": {"type": "string", "maxLength": 1000},
    "new_password": {"type": "string", "minLength": 10, "maxLength": 1000}}})";

struct Context {
  Accounts& accounts;
  const Config& config;
};

constexpr std::string_view kEverywhere = "/", kAuthOnly = "/api/v1/auth";

void ClearCookies(const Call& call, http::Response& response) {
  AddCookie(call, response, kAccessCookie, "", kEverywhere, 0, true);
  AddCookie(call, response, kRefreshCookie, "", kAuthOnly, 0, true);
  AddCookie(call, response, kCsrfCookie, "", kEverywhere, 0, false);
}

http::Response Session(const Context& context, Call& call, const account::LoginTokens& tokens) {
  auto response = http::Response::Json(
      200, json::object{{"user", EncodeUser(tokens.user)},
                        {"csrf_token", tokens.csrf},
                        {"expires_in", context.config.login_access_minutes * 60}});
  SetLoginCookies(context.config, call, response, tokens);
  return response;
}

Answer Login(Context context, Call& call) {
  std::string name = TextField(call.body, "name").value_or("");
  std::string address = call.exchange.PeerAddress();
  auto key = TextField(call.body, "api_key");
  auto tokens =
      key ? co_await context.accounts.LoginByKey(*key, address)
          : co_await context.accounts.Login(name, *TextField(call.body, "password"), address);
  if (tokens) co_return Session(context, call, *tokens);
  Refusal refusal = RefusalOf(tokens.error());
  refusal.retry_after_s = context.accounts.LoginWait(name, address).count();
  co_return ErrorResponse(refusal, call.exchange.request_id());
}

Answer Renew(Context context, Call& call) {
  const http::RequestHead& request = call.exchange.request();
  std::string token = CookieOf(request, kRefreshCookie);
  if (token.empty()) co_return Fail(Code::kUnauthenticated, "there is no login to renew");
  auto checked = CheckCsrf(request, context.accounts, Accounts::LoginOf(token));
  if (!checked) co_return ErrorResponse(checked.error(), call.exchange.request_id());
  auto tokens = co_await context.accounts.Refresh(token);
  if (tokens) co_return Session(context, call, *tokens);
  http::Response response = ErrorResponse(tokens.error(), call.exchange.request_id());
  if (response.status == 401) ClearCookies(call, response);
  co_return response;
}

Answer Logout(Context context, Call& call) {
  const http::RequestHead& request = call.exchange.request();
  std::string login_id = Accounts::LoginOf(CookieOf(request, kRefreshCookie));
  if (auto identity = context.accounts.ByAccessToken(CookieOf(request, kAccessCookie))) {
    login_id = identity->login_id;
    call.who.user_id = identity->user_id;
  }
  http::Response response = http::Response::Empty(204);
  if (!login_id.empty()) {
    // SECURITY: it also shows that the login is theirs: the token is made from its id.
    auto checked = CheckCsrf(request, context.accounts, login_id);
    if (!checked) co_return ErrorResponse(checked.error(), call.exchange.request_id());
    CO_TRY(co_await context.accounts.Logout(login_id));
  }
  ClearCookies(call, response);
  co_return response;
}

Answer Me(Context context, Call& call) {
  const store::UserRow* user = context.accounts.FindUser(call.who.user_id);
  if (!user) co_return Fail(Code::kUnauthenticated, "this user does not exist any more");
  json::value key_id = nullptr;
  if (!call.who.key_id.empty()) key_id = json::string(call.who.key_id);
  co_return http::Response::Json(
      200, json::object{{"user", EncodeUser(*user)}, {"key_id", std::move(key_id)}});
}

Answer SetPassword(Context context, Call& call) {
  const store::UserRow* user = context.accounts.FindUser(call.who.user_id);
  // SECURITY: a page that somebody left open, or a stolen key, must not be enough.
  if (user && !user->password_hash.empty()) {
    CO_TRY_ASSIGN(bool right,
                  co_await context.accounts.CheckPassword(
                      call.who.user_id, TextField(call.body, "current_password").value_or("")));
    if (!right) co_return Fail(Code::kPermissionDenied, "the current password is not right");
  }
  CO_TRY(co_await context.accounts.ChangeUser(call.who.user_id,
                                              {.password = *TextField(call.body, "new_password")}));
  call.target = call.who.user_id;
  http::Response response = http::Response::Empty(204);
  ClearCookies(call, response);
  co_return response;
}

}  // namespace

void AddCookie(const Call& call, http::Response& response, std::string_view name,
               std::string_view value, std::string_view path, int64_t seconds, bool http_only) {
  response.headers.Add(
      "Set-Cookie",
      fmt::format("{}={}; Path={}; Max-Age={}; SameSite=Lax{}{}", name, value, path, seconds,
                  http_only ? "; HttpOnly" : "", call.exchange.IsTls() ? "; Secure" : ""));
}

void SetLoginCookies(const Config& config, Call& call, http::Response& response,
                     const account::LoginTokens& tokens) {
  int64_t access_s = config.login_access_minutes * 60;
  int64_t refresh_s = config.login_refresh_days * 86'400;
  call.who.user_id = tokens.user.id;
  // SECURITY: scripts read only the CSRF token; the refresh token travels to the routes of logins
  // only.
  AddCookie(call, response, kAccessCookie, tokens.access, kEverywhere, access_s, true);
  AddCookie(call, response, kRefreshCookie, tokens.refresh, kAuthOnly, refresh_s, true);
  AddCookie(call, response, kCsrfCookie, tokens.csrf, kEverywhere, refresh_s, false);
}

void AddAuthRoutes(Frame& frame, Accounts& accounts, const Config& config) {
  frame.AddSchema("Login", kLoginSchema);
  frame.AddSchema("Session", kSessionSchema);
  frame.AddSchema("Me", kMeSchema);
  frame.AddSchema("PasswordChange", kPasswordSchema);
  Context context{accounts, config};
  frame.Add({.method = "POST",
             .pattern = "/api/v1/auth/login",
             .tag = "auth",
             .id = "login",
             .summary = "Log in with name and password, or with an API key; sets three cookies",
             .access = Access::kNobody,
             .request = "Login",
             .responses = {{200, "Session"}, {401, "Error"}},
             .handler = [context](Call& call) { return Login(context, call); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/auth/refresh",
             .tag = "auth",
             .id = "refreshLogin",
             .summary = "New cookies for those of a login; the old ones are used up",
             .access = Access::kNobody,
             .responses = {{200, "Session"}, {401, "Error"}, {403, "Error"}},
             .handler = [context](Call& call) { return Renew(context, call); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/auth/logout",
             .tag = "auth",
             .id = "logout",
             .summary = "End the login of these cookies",
             .access = Access::kNobody,
             .responses = {{204, ""}, {403, "Error"}},
             .handler = [context](Call& call) { return Logout(context, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/auth/me",
             .tag = "auth",
             .id = "getMe",
             .summary = "Who you are",
             .access = Access::kViewer,
             .responses = {{200, "Me"}},
             .handler = [context](Call& call) { return Me(context, call); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/auth/password",
             .tag = "auth",
             .id = "changePassword",
             .summary = "Change your password; ends all your logins",
             .access = Access::kViewer,
             .request = "PasswordChange",
             .responses = {{204, ""}},
             .handler = [context](Call& call) { return SetPassword(context, call); }});
}

}  // namespace caisson::api
