#include "e2b/control_plane.h"

#include <boost/json.hpp>
#include <map>

#include "account/cookies.h"
#include "base/log.h"
#include "base/text.h"
#include "e2b/answer.h"
#include "e2b/codec.h"
#include "e2b/fields.h"

namespace caisson::e2b {

void ControlPlane::Add(http::Router& router, std::vector<Route> routes) {
  std::map<std::string, std::string> methods;  // of each pattern
  for (Route& route : routes) {
    std::string& list = methods[std::string(route.pattern)];
    list += list.empty() ? std::string(route.method) : fmt::format(", {}", route.method);
    router.Add(
        route.method, route.pattern,
        [this, action = fmt::format("{} {}", route.method, route.pattern),
         handler = std::move(route.handler)](http::Exchange& exchange, http::PathParams params) {
          return Serve(exchange, std::move(params), action, handler);
        });
  }
  for (const auto& [pattern, names] : methods)
    router.Add("OPTIONS", pattern,
               [this, list = names](http::Exchange& exchange, http::PathParams) {
                 return ServePreflight(exchange, list);
               });
}

Task<void> ControlPlane::ServePreflight(http::Exchange& exchange, std::string methods) {
  (void)co_await exchange.Send(Preflight(exchange.request(), methods));
}

Task<void> ControlPlane::Serve(http::Exchange& exchange, http::PathParams params,
                               std::string action, Handler handler) {
  auto who = Authenticate(exchange.request());
  Result<http::Response> answer = tl::unexpected(Error(Code::kInternal, ""));
  std::string target;
  if (auto id = params.find("id"); id != params.end()) target = id->second;
  if (who)
    answer = co_await Ask(exchange, std::move(params), *who, std::move(handler), target);
  else
    answer = tl::unexpected(who.error());
  if (exchange.answered()) co_return;
  http::Response response = answer ? std::move(*answer) : ErrorAnswer(answer.error());
  if (response.status == 429 && who)
    response.headers.Set("Retry-After", fmt::to_string(manager_.RetryAfter(who->user_id).count()));
  AddCors(response);
  if (who) WriteDown(exchange, *who, std::move(action), std::move(target), response.status);
  if (response.status >= 500 && response.status != 501)
    LogWarn("a request failed", {{"request", exchange.request_id()},
                                 {"target", exchange.request().Path()},
                                 {"status", response.status},
                                 {"answer", response.body}});
  // A client that is gone cannot be told, and that is no failure of ours.
  (void)co_await exchange.Send(std::move(response));
}

ControlPlane::Answer ControlPlane::Ask(http::Exchange& exchange, http::PathParams params,
                                       account::Identity who, Handler handler,
                                       std::string& target) {
  CO_TRY(manager_.Admit(who.user_id));
  auto named = params.find("id");
  std::string id = named == params.end() ? "" : named->second;
  auto answer = co_await handler(
      {exchange, std::move(params), who.user_id, /*only_looks=*/who.role == "viewer", target});
  bool missing = answer ? answer->status == 404 : answer.error().code() == Code::kNotFound;
  if (!missing || id.empty()) co_return answer;
  co_return co_await SayWhere(who.user_id, std::move(id), std::move(answer));
}

ControlPlane::Answer ControlPlane::SayWhere(std::string key_id, std::string id,
                                            Result<http::Response> answer) {
  auto sandbox = DecodeSandboxId(id);
  if (!sandbox) co_return answer;
  auto node = co_await manager_.FindNode(std::move(key_id), *sandbox);
  if (!node || node->empty()) co_return answer;
  co_return Fail(Code::kUnavailable,
                 "sandbox '{}' is at the server {} of this database; ask that one", *sandbox,
                 *node);
}

void ControlPlane::WriteDown(const http::Exchange& exchange, const account::Identity& who,
                             std::string action, std::string target, unsigned status) {
  if (!account::ChangesState(exchange.request().method) || status == 429) return;
  audit_.Add({.at = Now(),
              .actor_id = who.user_id,
              .key_id = who.key_id,
              .action = std::move(action),
              .target = ToUtf8(target),
              .status = status,
              .request_id = exchange.request_id(),
              .address = exchange.PeerAddress()});
}

Result<account::Identity> ControlPlane::Authenticate(const http::RequestHead& request) const {
  TRY_ASSIGN(account::Identity who, Identify(request));
  if (who.role == "viewer" && account::ChangesState(request.method))
    return Fail(Code::kPermissionDenied, "this user may only look");
  return who;
}

Result<account::Identity> ControlPlane::Identify(const http::RequestHead& request) const {
  std::string_view key = request.headers.Value("X-API-KEY");
  if (key.empty()) key = account::BearerOf(request);
  if (!key.empty()) {
    auto holder = accounts_.ByKey(key);
    if (!holder) return Fail(Code::kUnauthenticated, "the API key is not valid");
    return std::move(*holder);
  }
  std::string token = account::CookieOf(request, account::kAccessCookie);
  if (token.empty())
    return Fail(Code::kUnauthenticated, "the API key is missing: send it in the X-API-KEY header");
  auto login = accounts_.ByAccessToken(token);
  if (!login) return Fail(Code::kUnauthenticated, "the login is over: renew it, or log in again");
  if (account::ChangesState(request.method) &&
      !account::HasCsrfToken(request, accounts_, login->login_id))
    return Fail(Code::kPermissionDenied, "{}", account::kNoCsrfToken);
  return std::move(*login);
}

Task<Result<std::string>> ControlPlane::ReadText(http::Exchange& exchange) const {
  auto text = co_await exchange.ReadAll(static_cast<size_t>(config_.http_max_body_bytes));
  // Not 504, which clients take for a failure of ours and send the request again.
  if (!text && text.error().code() == Code::kDeadlineExceeded)
    (void)co_await exchange.Send(
        ErrorAnswer(408, "the body of the request did not arrive in time"));
  if (!text && text.error().code() == Code::kDataLoss)
    co_return Fail(Code::kInvalidArgument, "the body of the request ended early");
  co_return text;
}

Task<Result<boost::json::object>> ControlPlane::ReadBody(http::Exchange& exchange,
                                                         bool optional) const {
  CO_TRY_ASSIGN(std::string text, co_await ReadText(exchange));
  co_return ParseBody(text, optional);
}

Result<std::optional<int64_t>> TakeNumber(const http::Query& query, std::string_view name,
                                          int64_t min, int64_t max) {
  auto text = query.Get(name);
  if (!text || text->empty()) return std::optional<int64_t>();
  auto number = ParseInt<int64_t>(*text);
  if (!number || *number < min || *number > max)
    return Fail(Code::kInvalidArgument, "{} must be a number from {} to {}, not '{}'", name, min,
                max, *text);
  return std::optional(*number);
}

}  // namespace caisson::e2b
