#include "cli/front.h"

#include "api/refusal.h"
#include "base/log.h"
#include "base/text.h"

namespace caisson::cli {
namespace {

// Asked every few seconds by machines; their lines would bury the others.
bool IsProbe(std::string_view route) { return route == "/health" || route == "/metrics"; }

bool ChangesSomething(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

http::Response NoSuchRoute(const http::RequestHead& request) {
  return http::Response::Json(
      404, boost::json::object{{"code", 404},
                               {"message", ToUtf8(fmt::format("There is no {} {} on this server",
                                                              request.method, request.Path()))}});
}

http::Response WrongMethod(const http::RequestHead& request,
                           const std::vector<std::string>& allowed) {
  http::Response response = http::Response::Json(
      405, boost::json::object{{"code", 405},
                               {"message", ToUtf8(fmt::format("{} cannot be used on {}",
                                                              request.method, request.Path()))}});
  response.headers.Set("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
  return response;
}

// Each API in its own shape.
http::Response NoHandler(const http::Exchange& exchange, const std::vector<std::string>& allowed) {
  const http::RequestHead& request = exchange.request();
  if (!request.Path().starts_with("/api/"))
    return allowed.empty() ? NoSuchRoute(request) : WrongMethod(request, allowed);
  if (allowed.empty()) return api::NoSuchRoute(request, exchange.request_id());
  return api::WrongMethod(request, fmt::format("{}", fmt::join(allowed, ", ")),
                          exchange.request_id());
}

}  // namespace

Task<void> Front::Handle(http::Exchange& exchange) {
  auto begun = std::chrono::steady_clock::now();
  if (co_await gateway_.Handle(exchange)) {
    // The gateway has its own numbers.
    LogDebug("traffic", {{"method", exchange.request().method},
                         {"status", exchange.status()},
                         {"request_id", exchange.request_id()}});
    co_return;
  }
  const http::RequestHead& request = exchange.request();
  http::Router::Match match = router_.Find(request.method, request.Path());
  std::string route = match.pattern.empty() ? "none" : match.pattern;
  if (match.handler)
    co_await (*match.handler)(exchange, std::move(match.params));
  else
    (void)co_await exchange.Send(NoHandler(exchange, match.allowed));
  Record(exchange, route, begun);
}

void Front::Record(const http::Exchange& exchange, const std::string& route,
                   std::chrono::steady_clock::time_point begun) {
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::string result = exchange.status() ? fmt::format("{}xx", exchange.status() / 100) : "none";
  metrics_
      .AddCounter("caisson_http_requests_total", "Requests to the control plane.",
                  {{"route", route}, {"status", result}})
      .Add();
  metrics_
      .AddHistogram("caisson_http_request_seconds", "Duration of requests to the control plane.",
                    LatencyBuckets(), {{"route", route}})
      .Observe(took.count());
  if (exchange.status() && !IsProbe(route))
    alerts_.Count({.took = took,
                   .status = exchange.status(),
                   .changes = ChangesSomething(exchange.request().method),
                   .timed = !lasting_.contains(exchange.request().method + " " + route)});
  // SECURITY: the route's pattern, not the target: queries carry signatures and paths carry names.
  Log(IsProbe(route) ? LogLevel::kDebug : LogLevel::kInfo, "request",
      {{"method", exchange.request().method},
       {"route", route},
       {"status", exchange.status()},
       {"ms", static_cast<int64_t>(took.count() * 1000)},
       {"request_id", exchange.request_id()}});
}

}  // namespace caisson::cli
