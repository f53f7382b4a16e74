#include "e2b/control_plane.h"

#include <boost/json.hpp>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "e2b/answer.h"
#include "e2b/fields.h"

namespace caisson::e2b {

void ControlPlane::Add(http::Router& router, std::vector<Route> routes) {
  std::map<std::string, std::string> methods;  // of each pattern
  for (Route& route : routes) {
    std::string& list = methods[std::string(route.pattern)];
    list += list.empty() ? std::string(route.method) : fmt::format(", {}", route.method);
    router.Add(route.method, route.pattern,
               [this, handler = std::move(route.handler)](http::Exchange& exchange,
                                                          http::PathParams params) {
                 return Serve(exchange, std::move(params), handler);
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

Task<void> ControlPlane::Serve(http::Exchange& exchange, http::PathParams params, Handler handler) {
  auto key_id = Authenticate(exchange.request());
  Result<http::Response> answer = tl::unexpected(Error(Code::kInternal, ""));
  if (key_id)
    answer = co_await Ask(exchange, std::move(params), *key_id, std::move(handler));
  else
    answer = tl::unexpected(key_id.error());
  if (exchange.answered()) co_return;
  http::Response response = answer ? std::move(*answer) : ErrorAnswer(answer.error());
  if (response.status == 429 && key_id)
    response.headers.Set("Retry-After", fmt::to_string(manager_.RetryAfter(*key_id).count()));
  AddCors(response);
  if (response.status >= 500 && response.status != 501)
    LogWarn("a request failed", {{"request", exchange.request_id()},
                                 {"target", exchange.request().Path()},
                                 {"status", response.status},
                                 {"answer", response.body}});
  // A client that is gone cannot be told, and that is no failure of ours.
  (void)co_await exchange.Send(std::move(response));
}

ControlPlane::Answer ControlPlane::Ask(http::Exchange& exchange, http::PathParams params,
                                       std::string key_id, Handler handler) {
  CO_TRY(manager_.Admit(key_id));
  co_return co_await handler({exchange, std::move(params), std::move(key_id)});
}

Result<std::string> ControlPlane::Authenticate(const http::RequestHead& request) const {
  std::string_view key = request.headers.Value("X-API-KEY");
  std::string_view authorization = request.headers.Value("Authorization");
  constexpr std::string_view kBearer = "bearer ";
  if (key.empty() && authorization.size() > kBearer.size() &&
      EqualsIgnoreCase(authorization.substr(0, kBearer.size()), kBearer))
    key = Trim(authorization.substr(kBearer.size()));
  if (key.empty())
    return Fail(Code::kUnauthenticated, "the API key is missing: send it in the X-API-KEY header");
  auto id = keys_.Check(key);
  if (!id) return Fail(Code::kUnauthenticated, "the API key is not valid");
  return *id;
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
