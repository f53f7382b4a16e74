#include "e2b/api.h"

#include <array>
#include <boost/json.hpp>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "e2b/answer.h"
#include "e2b/fields.h"

namespace caisson::e2b {
namespace {

std::string DomainWithPort(const Config& config, uint16_t port) {
  uint16_t usual = config.tls == "off" ? 80 : 443;
  if (port == usual || config.domain.find(':') != std::string::npos) return config.domain;
  return fmt::format("{}:{}", config.domain, port);
}

}  // namespace

Api::Api(sandbox::Manager& manager, const sandbox::KeyRing& keys,
         const sandbox::TemplateCatalog& templates, const Config& config, uint16_t port)
    : manager_(manager),
      keys_(keys),
      templates_(templates),
      config_(config),
      domain_(DomainWithPort(config, port)),
      defaults_{.timeout_v2 = std::chrono::seconds(config.default_timeout_s)} {}

std::span<const Api::RouteEntry> Api::Routes() {
  static constexpr std::array kRoutes = {
      RouteEntry{"POST", "/sandboxes", &Api::CreateV1},
      RouteEntry{"POST", "/v2/sandboxes", &Api::CreateV2},
      RouteEntry{"GET", "/sandboxes", &Api::ListV1},
      RouteEntry{"GET", "/v2/sandboxes", &Api::ListV2},
      RouteEntry{"GET", "/sandboxes/metrics", &Api::MetricsOfMany},
      RouteEntry{"GET", "/sandboxes/{id}", &Api::Get},
      RouteEntry{"DELETE", "/sandboxes/{id}", &Api::Kill},
      RouteEntry{"POST", "/sandboxes/{id}/connect", &Api::ConnectV1},
      RouteEntry{"POST", "/v2/sandboxes/{id}/connect", &Api::ConnectV2},
      RouteEntry{"POST", "/sandboxes/{id}/timeout", &Api::SetTimeout},
      RouteEntry{"POST", "/sandboxes/{id}/refreshes", &Api::Refresh},
      RouteEntry{"PUT", "/sandboxes/{id}/network", &Api::SetNetwork},
      RouteEntry{"GET", "/sandboxes/{id}/metrics", &Api::Metrics},
      RouteEntry{"GET", "/sandboxes/{id}/logs", &Api::LogsV1},
      RouteEntry{"GET", "/v2/sandboxes/{id}/logs", &Api::LogsV2},
      RouteEntry{"POST", "/sandboxes/{id}/pause", &Api::NotYet},
      RouteEntry{"POST", "/sandboxes/{id}/resume", &Api::NotYet},
      RouteEntry{"POST", "/sandboxes/{id}/snapshots", &Api::NotYet},
      RouteEntry{"POST", "/sandboxes/{id}/fork", &Api::NotYet},
      RouteEntry{"GET", "/snapshots", &Api::ListSnapshots},
      RouteEntry{"GET", "/templates", &Api::ListTemplates},
      RouteEntry{"GET", "/v2/templates", &Api::ListTemplates},
      RouteEntry{"GET", "/templates/aliases/{alias}", &Api::FindAlias},
      RouteEntry{"DELETE", "/templates/{id}", &Api::DeleteTemplate},
      RouteEntry{"POST", "/v3/templates", &Api::BuildTemplate},
  };
  return kRoutes;
}

void Api::AddRoutes(http::Router& router) {
  std::map<std::string, std::string> methods;  // of each pattern
  for (const RouteEntry& route : Routes()) {
    router.Add(route.method, route.pattern,
               [this, handler = route.handler](http::Exchange& exchange, http::PathParams params) {
                 return Serve(exchange, std::move(params), handler);
               });
    std::string& list = methods[std::string(route.pattern)];
    list += list.empty() ? std::string(route.method) : fmt::format(", {}", route.method);
  }
  for (const auto& [pattern, names] : methods)
    router.Add("OPTIONS", pattern,
               [this, list = names](http::Exchange& exchange, http::PathParams) {
                 return ServePreflight(exchange, list);
               });
}

Task<void> Api::ServePreflight(http::Exchange& exchange, std::string methods) {
  (void)co_await exchange.Send(Preflight(exchange.request(), methods));
}

Task<void> Api::Serve(http::Exchange& exchange, http::PathParams params, Method handler) {
  auto key_id = Authenticate(exchange.request());
  Result<http::Response> answer = tl::unexpected(Error(Code::kInternal, ""));
  if (key_id)
    answer = co_await (this->*handler)({exchange, std::move(params), std::move(*key_id)});
  else
    answer = tl::unexpected(std::move(key_id).error());
  if (exchange.answered()) co_return;
  http::Response response = answer ? std::move(*answer) : ErrorAnswer(answer.error());
  AddCors(response);
  if (response.status >= 500 && response.status != 501)
    LogWarn("a request failed", {{"request", exchange.request_id()},
                                 {"target", exchange.request().Path()},
                                 {"status", response.status},
                                 {"answer", response.body}});
  // A client that is gone cannot be told, and that is no failure of ours.
  (void)co_await exchange.Send(std::move(response));
}

Result<std::string> Api::Authenticate(const http::RequestHead& request) const {
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

Task<Result<std::string>> Api::ReadText(http::Exchange& exchange) const {
  auto text = co_await exchange.ReadAll(static_cast<size_t>(config_.http_max_body_bytes));
  // Not 504, which clients take for a failure of ours and send the request again.
  if (!text && text.error().code() == Code::kDeadlineExceeded)
    (void)co_await exchange.Send(
        ErrorAnswer(408, "the body of the request did not arrive in time"));
  if (!text && text.error().code() == Code::kDataLoss)
    co_return Fail(Code::kInvalidArgument, "the body of the request ended early");
  co_return text;
}

Task<Result<boost::json::object>> Api::ReadBody(http::Exchange& exchange, bool optional) const {
  CO_TRY_ASSIGN(std::string text, co_await ReadText(exchange));
  co_return ParseBody(text, optional);
}

Result<sandbox::Info> Api::Find(const Call& call) const {
  TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  return manager_.Get(call.key_id, id);
}

}  // namespace caisson::e2b
