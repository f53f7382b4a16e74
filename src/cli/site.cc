#include "cli/site.h"

#include <algorithm>

#include "cli/page.h"

namespace caisson::cli {
namespace {

// SECURITY: the page has no script at all, so none that somebody slipped in will run either.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

Task<void> Reply(http::Exchange& exchange, http::Response response) {
  (void)co_await exchange.Send(std::move(response));
}

http::Response Health() {
  http::Response response = http::Response::Json(
      200, boost::json::object{{"status", "ok"}, {"version", CAISSON_VERSION}});
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

http::Response Redirect(std::string_view to) {
  http::Response response = http::Response::Empty(302);
  response.headers.Set("Location", to);
  return response;
}

http::Response MetricsText(const SiteOptions& options) {
  options.refresh();
  http::Response response = http::Response::Text(200, options.metrics.Text());
  response.headers.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

http::Response Page(http::Exchange& exchange) {
  http::Response response = http::Response::Html(
      200,
      RenderPage(exchange.IsTls() ? "https" : "http", exchange.request().headers.Value("Host")));
  response.headers.Set("Content-Security-Policy", kPolicy);
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Referrer-Policy", "no-referrer");
  return response;
}

http::Response Style() {
  http::Response response = http::Response::Text(200, std::string(kPageCss));
  response.headers.Set("Content-Type", "text/css; charset=utf-8");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

bool IsPlainHost(std::string_view host) {
  return !host.empty() && host.size() < 256 &&
         std::all_of(
             host.begin(), host.end(),
             [](char c) {
               return isalnum(static_cast<unsigned char>(c)) ||
                      std::string_view(".-:[]").find(c) != std::string_view::npos;
             });
}

}  // namespace

std::string RenderPage(std::string_view scheme, std::string_view host) {
  std::string origin =
      fmt::format("{}://{}", scheme, IsPlainHost(host) ? host : std::string_view("127.0.0.1:8000"));
  std::string page(kPageHtml);
  for (const auto& [mark, value] : {std::pair<std::string_view, std::string>("{{ORIGIN}}", origin),
                                    {"{{VERSION}}", CAISSON_VERSION}})
    for (size_t at; (at = page.find(mark)) != std::string::npos;)
      page.replace(at, mark.size(), value);
  return page;
}

void AddSiteRoutes(http::Router& router, SiteOptions options) {
  router.Add("GET", "/health",
             [](http::Exchange& exchange, http::PathParams) { return Reply(exchange, Health()); });
  router.Add("GET", "/metrics", [options](http::Exchange& exchange, http::PathParams) {
    return Reply(exchange, MetricsText(options));
  });
  router.Add("GET", "/", [](http::Exchange& exchange, http::PathParams) {
    return Reply(exchange, Redirect("/app"));
  });
  router.Add("GET", "/app", [](http::Exchange& exchange, http::PathParams) {
    return Reply(exchange, Page(exchange));
  });
  router.Add("GET", "/app/style.css",
             [](http::Exchange& exchange, http::PathParams) { return Reply(exchange, Style()); });
}

}  // namespace caisson::cli
