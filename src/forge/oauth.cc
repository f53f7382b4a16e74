#include "forge/oauth.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "forge/fields.h"

namespace caisson::forge {
namespace {

Endpoint EndpointOf(const std::string& url) { return ParseEndpoint(url).value_or(Endpoint()); }

// GitHub's names are the same in capitals.
bool SameName(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

OAuth::OAuth(asio::any_io_executor executor, const Config& config)
    : config_(config),
      site_(executor, EndpointOf(config.github_url)),
      api_(executor, EndpointOf(config.github_api_url)) {}

bool OAuth::configured() const {
  return !config_.github_oauth_client_id.empty() && !config_.github_oauth_client_secret.empty();
}

std::string OAuth::AuthorizeUrl(std::string_view state) const {
  return fmt::format("{}/login/oauth/authorize?client_id={}&state={}&scope=read%3Auser",
                     config_.github_url, PercentEncode(config_.github_oauth_client_id),
                     PercentEncode(state));
}

Task<Result<OAuth::Person>> OAuth::Identify(std::string code) {
  if (!configured()) co_return Fail(Code::kNotFound, "this server has no sign-in by GitHub");
  CO_TRY_ASSIGN(std::string token, co_await Redeem(std::move(code)));
  CO_TRY_ASSIGN(Person person, co_await WhoIs(std::move(token)));
  if (!IsAllowed(person.login))
    co_return Fail(Code::kPermissionDenied, "{} may not sign in here (github_oauth_allowed_users)",
                   person.login);
  co_return person;
}

bool OAuth::IsAllowed(std::string_view login) const {
  if (Trim(config_.github_oauth_allowed_users).empty()) return true;
  auto allowed = Split(config_.github_oauth_allowed_users, ',');
  return std::ranges::any_of(allowed,
                             [&](std::string_view one) { return SameName(Trim(one), login); });
}

// A code that is not good is answered with 200 and an error, too.
Task<Result<std::string>> OAuth::Redeem(std::string code) {
  http::RequestHead head{.method = "POST", .target = "/login/oauth/access_token"};
  head.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  std::string body = fmt::format(
      "client_id={}&client_secret={}&code={}", PercentEncode(config_.github_oauth_client_id),
      PercentEncode(config_.github_oauth_client_secret), PercentEncode(code));
  CO_TRY_ASSIGN(json::value answer, co_await Ask(site_, std::move(head), std::move(body)));
  std::string token = Text(answer, "access_token");
  if (!token.empty()) co_return token;
  std::string error = Text(answer, "error");
  if (error == "bad_verification_code")
    co_return Fail(Code::kUnauthenticated, "GitHub does not know this code; sign in again");
  co_return Fail(Code::kFailedPrecondition, "GitHub refuses the sign-in: {}",
                 error.empty() ? "there is no token in its answer" : ToUtf8(error));
}

Task<Result<OAuth::Person>> OAuth::WhoIs(std::string token) {
  http::RequestHead head{.method = "GET", .target = "/user"};
  head.headers = {{"Authorization", "Bearer " + token}};
  CO_TRY_ASSIGN(json::value answer, co_await Ask(api_, std::move(head), ""));
  Person person{.id = Number(answer, "id"), .login = Text(answer, "login")};
  if (person.id <= 0 || person.login.empty())
    co_return Fail(Code::kFailedPrecondition, "GitHub does not say who it is");
  co_return person;
}

// SECURITY: what GitHub says is not repeated as it is: the answer may hold the token.
Task<Result<json::value>> OAuth::Ask(Transport& to, http::RequestHead head, std::string body) {
  head.target = to.endpoint().prefix + head.target;
  head.headers.Set("Host", to.endpoint().host);
  head.headers.Set("Accept", "application/json");
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  auto outcome = co_await to.Exchange(std::move(head), std::move(body), /*repeatable=*/false,
                                      std::chrono::milliseconds(config_.github_timeout_ms));
  if (!outcome.answer)
    co_return Fail(Code::kUnavailable, "GitHub cannot be asked: {}",
                   outcome.answer.error().message());
  if (outcome.answer->status == 401)
    co_return Fail(Code::kUnauthenticated, "GitHub does not accept the sign-in");
  if (outcome.answer->status != 200)
    co_return Fail(outcome.answer->status >= 500 ? Code::kUnavailable : Code::kFailedPrecondition,
                   "GitHub answered with {}", outcome.answer->status);
  boost::system::error_code ec;
  json::value value = json::parse(outcome.answer->body, ec);
  if (ec || !value.is_object())
    co_return Fail(Code::kFailedPrecondition, "GitHub's answer cannot be read");
  co_return value;
}

}  // namespace caisson::forge
