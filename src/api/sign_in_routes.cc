#include "api/sign_in_routes.h"

#include <boost/json.hpp>

#include "api/auth_routes.h"
#include "api/authentication.h"
#include "api/work_codec.h"
#include "base/encoding.h"
#include "base/id.h"

namespace caisson::api {
namespace {

using account::Accounts;
using forge::OAuth;

constexpr std::string_view kMethodsSchema = R"({
  "type": "object", "required": ["password", "api_key", "github", "github_url"],
  "properties": {"password": {"type": "boolean"}, "api_key": {"type": "boolean"},
                 "github": {"type": "boolean", "description": "begin at /api/v1/auth/github"},
                 "github_url": {"type": "string", "description": "links to pull requests begin so"}}})";

constexpr std::string_view kStateCookie = "caisson_oauth_state", kPath = "/api/v1/auth/github";
constexpr int64_t kPatience_s = 600;  // that somebody is away at GitHub
constexpr size_t kStateBytes = 32;
constexpr std::string_view kPage = "/app";

struct Context {
  Accounts& accounts;
  OAuth& github;
  const Config& config;
};

http::Response RedirectTo(std::string_view url) {
  http::Response response = http::Response::Empty(302);
  response.headers.Set("Location", std::string(url));
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

Answer Methods(Context context, Call&) {
  co_return http::Response::Json(200, json::object{{"password", true},
                                                   {"api_key", true},
                                                   {"github", context.github.configured()},
                                                   {"github_url", context.config.github_url}});
}

Answer Begin(Context context, Call& call) {
  if (!context.github.configured())
    co_return Fail(Code::kNotFound, "this server has no sign-in by GitHub");
  std::string state = RandomHex(kStateBytes);
  http::Response response = RedirectTo(context.github.AuthorizeUrl(state));
  AddCookie(call, response, kStateCookie, state, kPath, kPatience_s, true);
  co_return response;
}

// SECURITY: the code must belong to whoever began in this browser, or somebody could be signed in
// as another without knowing.
Answer Return(Context context, Call& call) {
  std::string expected = CookieOf(call.exchange.request(), kStateCookie);
  std::string state = TextParameter(call, "state"), code = TextParameter(call, "code");
  if (expected.empty() || !ConstantTimeEqual(state, expected))
    co_return Fail(Code::kPermissionDenied,
                   "this sign-in was not begun here, or too long ago; begin it again");
  if (code.empty())
    co_return Fail(Code::kPermissionDenied, "GitHub did not let you sign in: {}",
                   TextParameter(call, "error"));
  CO_TRY_ASSIGN(OAuth::Person person, co_await context.github.Identify(std::move(code)));
  CO_TRY_ASSIGN(auto tokens, co_await context.accounts.LoginBy(fmt::format("github:{}", person.id),
                                                               person.login));
  http::Response response = RedirectTo(kPage);
  SetLoginCookies(context.config, call, response, tokens);
  AddCookie(call, response, kStateCookie, "", kPath, 0, true);
  co_return response;
}

}  // namespace

void AddSignInRoutes(Frame& frame, Accounts& accounts, OAuth& github, const Config& config) {
  frame.AddSchema("SignInMethods", kMethodsSchema);
  Context context{accounts, github, config};
  frame.Add({.method = "GET",
             .pattern = "/api/v1/auth/methods",
             .tag = "auth",
             .id = "listSignInMethods",
             .summary = "How one can sign in here",
             .access = Access::kNobody,
             .responses = {{200, "SignInMethods"}},
             .handler = [context](Call& call) { return Methods(context, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/auth/github",
             .tag = "auth",
             .id = "signInByGithub",
             .summary = "Sends a browser to GitHub to sign in",
             .access = Access::kNobody,
             .responses = {{302, ""}, {404, "Error"}},
             .handler = [context](Call& call) { return Begin(context, call); }});
  frame.Add(
      {.method = "GET",
       .pattern = "/api/v1/auth/github/callback",
       .tag = "auth",
       .id = "returnFromGithub",
       .summary = "Where GitHub sends the browser back to; sets the cookies of a login",
       .access = Access::kNobody,
       .parameters = {{.name = "code", .description = "from GitHub"},
                      {.name = "state", .description = "the one it was sent with"},
                      {.name = "error", .description = "why there is no code"}},
       .responses = {{302, ""}, {401, "Error"}, {403, "Error"}, {404, "Error"}, {409, "Error"}},
       .handler = [context](Call& call) { return Return(context, call); }});
}

}  // namespace caisson::api
