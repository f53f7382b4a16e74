#include "gateway/editor_pass.h"

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::gateway {
namespace {

std::string Signature(std::string_view traffic_token, uint16_t port, std::string_view until) {
  return HexEncode(HmacSha256(traffic_token, fmt::format("editor\n{}\n{}", port, until)));
}

// SECURITY: pages of other sandboxes, and of other ports of this one, are of the same site as the
// editor, so browsers add its cookie to what they ask of it, WebSockets included. They may lead
// somebody there (a link), but ask for nothing themselves.
bool IsFromElsewhere(const http::RequestHead& request) {
  const http::Headers& headers = request.headers;
  if (auto origin = headers.Get("Origin")) {
    size_t start = origin->find("://");
    return start == std::string_view::npos ||
           !EqualsIgnoreCase(origin->substr(start + 3), headers.Value("Host"));
  }
  std::string site = ToLower(headers.Value("Sec-Fetch-Site"));
  if (site.empty() || site == "same-origin" || site == "none") return false;
  return request.method != "GET" ||
         !EqualsIgnoreCase(headers.Value("Sec-Fetch-Mode"), "navigate") ||
         !EqualsIgnoreCase(headers.Value("Sec-Fetch-Dest"), "document");
}

bool HasCookie(const http::Headers& headers, std::string_view traffic_token, uint16_t port) {
  for (const auto& [name, value] : headers) {
    if (!EqualsIgnoreCase(name, "Cookie")) continue;
    for (std::string_view pair : Split(value, ';')) {
      pair = Trim(pair);
      size_t is = pair.find('=');
      if (is != std::string_view::npos && pair.substr(0, is) == kEditorPass &&
          IsEditorPass(pair.substr(is + 1), traffic_token, port, Now()))
        return true;
    }
  }
  return false;
}

}  // namespace

std::string MakeEditorPass(std::string_view traffic_token, uint16_t port, Time until) {
  std::string seconds = fmt::to_string(UnixSeconds(until));
  return seconds + "." + Signature(traffic_token, port, seconds);
}

bool IsEditorPass(std::string_view pass, std::string_view traffic_token, uint16_t port, Time now) {
  size_t dot = pass.find('.');
  if (dot == std::string_view::npos || traffic_token.empty()) return false;
  std::string_view until = pass.substr(0, dot);
  if (!ConstantTimeEqual(pass.substr(dot + 1), Signature(traffic_token, port, until))) return false;
  return ParseInt<int64_t>(until).value_or(0) > UnixSeconds(now);
}

std::optional<http::Response> AcceptEditorPass(const http::RequestHead& request,
                                               std::string_view traffic_token, uint16_t port,
                                               std::chrono::seconds lifetime, bool tls) {
  if (request.method != "GET" || request.Path() != "/") return {};
  http::Query query = request.ParsedQuery();
  auto pass = query.Get(kEditorPass);
  if (!pass || !IsEditorPass(*pass, traffic_token, port, Now())) return {};
  http::Response response = http::Response::Empty(303);
  response.headers.Set("Location", "/");
  response.headers.Set(
      "Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{}", kEditorPass,
                                MakeEditorPass(traffic_token, port, Now() + lifetime),
                                lifetime.count(), tls ? "; Secure" : ""));
  response.headers.Set("Cache-Control", "no-store");
  response.headers.Set("Referrer-Policy", "no-referrer");
  return response;
}

bool MayUseEditor(const http::RequestHead& request, std::string_view traffic_token, uint16_t port) {
  if (traffic_token.empty()) return false;
  if (auto token = request.headers.Get("E2b-Traffic-Access-Token"))
    return ConstantTimeEqual(*token, traffic_token);
  return HasCookie(request.headers, traffic_token, port) && !IsFromElsewhere(request);
}

}  // namespace caisson::gateway
