#include "cli/site.h"

#include "base/id.h"
#include "cli/page.h"
#include "http/accept.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kIndex = "/index.html";

// SECURITY: the page of the API runs its own script and asks this server; nothing from elsewhere.
constexpr std::string_view kDocsPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

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

http::Response Page(std::string_view domain) {
  std::string nonce = RandomHex(16);
  http::Response response = http::Response::Html(200, RenderPage(nonce));
  response.headers.Set("Content-Security-Policy", PagePolicy(nonce, domain));
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Referrer-Policy", "no-referrer");
  response.headers.Set("Cache-Control", "no-cache");
  return response;
}

// Names of assets have a hash of their content, so a browser never has to ask for one again.
http::Response PageAsset(http::Exchange& exchange, const PageFile& file) {
  std::string_view accepted = exchange.request().headers.Value("Accept-Encoding");
  std::string_view coding = http::AcceptsCoding(accepted, "br")     ? "br"
                            : http::AcceptsCoding(accepted, "gzip") ? "gzip"
                                                                    : "";
  std::string_view bytes = coding == "br" ? file.brotli : coding == "gzip" ? file.gzip : file.plain;
  http::Response response = http::Response::Text(200, std::string(bytes));
  response.headers.Set("Content-Type", file.type);
  if (!coding.empty()) response.headers.Set("Content-Encoding", coding);
  response.headers.Set("Vary", "Accept-Encoding");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Cache-Control", file.path.starts_with("/assets/")
                                            ? "public, max-age=31536000, immutable"
                                            : "no-cache");
  return response;
}

http::Response Asset(std::string_view type, std::string_view text) {
  http::Response response = http::Response::Text(200, std::string(text));
  response.headers.Set("Content-Type", fmt::format("{}; charset=utf-8", type));
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response Docs() {
  http::Response response = Asset("text/html", kDocsHtml);
  response.headers.Set("Content-Security-Policy", kDocsPolicy);
  response.headers.Set("Referrer-Policy", "no-referrer");
  return response;
}

void AddPageRoutes(http::Router& router, const std::string& domain) {
  for (const char* pattern :
       {"/app", "/app/{screen}", "/app/{screen}/{id}", "/app/{screen}/{kind}/{id}"})
    router.Add("GET", pattern, [domain](http::Exchange& exchange, http::PathParams) {
      return Reply(exchange, Page(domain));
    });
  for (const PageFile& file : kPageFiles)
    if (file.path != kIndex)
      router.Add("GET", fmt::format("/app{}", file.path),
                 [&file](http::Exchange& exchange, http::PathParams) {
                   return Reply(exchange, PageAsset(exchange, file));
                 });
}

}  // namespace

std::string RenderPage(std::string_view nonce) {
  constexpr std::string_view kMark = "__NONCE__";
  for (const PageFile& file : kPageFiles) {
    if (file.path != kIndex) continue;
    std::string page(file.plain);
    if (size_t at = page.find(kMark); at != page.npos) page.replace(at, kMark.size(), nonce);
    return page;
  }
  return "";
}

// SECURITY: only our own scripts run; frames show nothing but previews, which are other origins.
std::string PagePolicy(std::string_view nonce, std::string_view domain) {
  std::string previews = fmt::format("http://*.{0}:* https://*.{0}:*", domain);
  if (domain != "localhost") previews += " http://*.localhost:*";
  return fmt::format(
      "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; img-src 'self' data: "
      "blob:; "
      "font-src 'self'; connect-src 'self'; frame-src {}; base-uri 'none'; form-action 'self'; "
      "frame-ancestors 'none'",
      nonce, previews);
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
  AddPageRoutes(router, options.domain);
  struct File {
    const char *path, *type;
    std::string_view text;
  };
  for (const File& file : {File{"/docs/style.css", "text/css", kDocsCss},
                           File{"/docs/app.js", "text/javascript", kDocsJs}})
    router.Add("GET", file.path, [file](http::Exchange& exchange, http::PathParams) {
      return Reply(exchange, Asset(file.type, file.text));
    });
  router.Add("GET", "/docs",
             [](http::Exchange& exchange, http::PathParams) { return Reply(exchange, Docs()); });
}

}  // namespace caisson::cli
