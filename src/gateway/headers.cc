#include "gateway/headers.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "base/text.h"
#include "gateway/signature.h"

namespace caisson::gateway {
namespace {

constexpr std::array<std::string_view, 9> kHopByHop = {"Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Connection",
                                                       "Proxy-Authorization",
                                                       "Proxy-Authenticate",
                                                       "TE",
                                                       "Trailer",
                                                       "Transfer-Encoding",
                                                       "Upgrade"};

void StripHopByHop(http::Headers& headers) {
  std::vector<std::string> named;
  for (const auto& [name, value] : headers)
    if (EqualsIgnoreCase(name, "Connection"))
      for (std::string_view token : Split(value, ',')) named.emplace_back(Trim(token));
  for (const std::string& name : named) headers.Remove(name);
  for (std::string_view name : kHopByHop) headers.Remove(name);
}

// "e2b_" + 40 hexadecimal digits, be it known or not, or whatever else opens this server. An
// application's own keys look different and pass.
bool IsServerKey(std::string_view value, const Passage& passage) {
  if (value.size() > 7 && EqualsIgnoreCase(value.substr(0, 7), "Bearer "))
    value = Trim(value.substr(7));
  bool looks_like_one =
      value.size() == 44 && value.starts_with("e2b_") &&
      std::all_of(value.begin() + 4, value.end(), [](unsigned char c) { return isxdigit(c); });
  return looks_like_one || (passage.is_our_key && passage.is_our_key(value));
}

// Cookies of the board, which a browser adds to whatever it asks of this host.
void StripCookies(http::Headers& headers) {
  constexpr std::string_view kOurs = "caisson_";
  std::vector<std::string> kept;
  bool any = false;
  for (const auto& [name, value] : headers) {
    if (!EqualsIgnoreCase(name, "Cookie")) continue;
    for (std::string_view pair : Split(value, ';'))
      if (Trim(pair).starts_with(kOurs))
        any = true;
      else if (!Trim(pair).empty())
        kept.emplace_back(Trim(pair));
  }
  if (!any) return;
  headers.Remove("Cookie");
  if (!kept.empty()) headers.Set("Cookie", fmt::format("{}", fmt::join(kept, "; ")));
}

// SECURITY: programs in a sandbox are strangers. Whoever may talk to them must not thereby hand
// them the key of the whole server.
void StripSecrets(http::Headers& headers, const Passage& passage) {
  for (std::string_view name : {"X-API-KEY", "Authorization"}) {
    bool any = std::any_of(headers.begin(), headers.end(), [&](const auto& field) {
      return EqualsIgnoreCase(field.first, name) && IsServerKey(Trim(field.second), passage);
    });
    if (any) headers.Remove(name);  // all of that name: a key may stand behind another value
  }
  headers.Remove("E2b-Traffic-Access-Token");
  StripCookies(headers);
}

bool HasValue(const http::Headers& headers, std::string_view name, std::string_view value) {
  return std::any_of(headers.begin(), headers.end(), [&](const auto& field) {
    return EqualsIgnoreCase(field.first, name) && ConstantTimeEqual(field.second, value);
  });
}

std::string ReplaceInQuery(const http::RequestHead& request, std::string_view name,
                           std::string_view value) {
  std::string target(request.Path());
  char separator = '?';
  for (std::string_view part : Split(request.QueryString(), '&')) {
    auto pairs = http::Query::Parse(part).all();
    bool replaced = !pairs.empty() && pairs.front().first == name;
    target += std::exchange(separator, '&');
    target += replaced ? fmt::format("{}={}", name, PercentEncode(value)) : std::string(part);
  }
  return target;
}

// SECURITY: what proves a client outside is not told inside, where a copy of the sandbox would
// still have it; and what envd takes inside, which every copy does have, proves nothing outside.
// Exchanged at every port: a server in the sandbox may ask envd in its client's name.
void ExchangeToken(http::Headers& headers, const Passage& passage) {
  constexpr std::string_view kToken = "X-Access-Token";
  if (!headers.Has(kToken)) return;
  bool secure = !passage.access_token.empty();
  if (secure && HasValue(headers, kToken, passage.access_token)) {
    headers.Set(kToken, passage.inside_token);
  } else if (secure && (passage.to_envd || HasValue(headers, kToken, passage.inside_token))) {
    headers.Set(kToken, "invalid");  // it may be the one of another sandbox
  } else if (passage.to_envd) {
    headers.Remove(kToken);
  }
}

void ExchangeSignature(http::RequestHead& request, const Passage& passage) {
  if (passage.access_token.empty() || request.Path() != "/files") return;
  SignedFields fields = SignedFields::From(request);
  if (!http::IsFileSignature(fields.signature)) return;
  http::FileSigner signer = fields.signer();
  if (signer.Made(fields.signature, passage.access_token))
    request.target = ReplaceInQuery(request, "signature", signer.Sign(passage.inside_token));
  else if (signer.Made(fields.signature, passage.inside_token))
    request.target = ReplaceInQuery(request, "signature", "invalid");
}

std::string FillPort(std::string text, uint16_t port) {
  constexpr std::string_view kPlaceholder = "${PORT}";
  for (size_t at; (at = text.find(kPlaceholder)) != std::string::npos;)
    text.replace(at, kPlaceholder.size(), std::to_string(port));
  return text;
}

void AddForwarded(http::Headers& headers, const Passage& passage) {
  std::string chain(headers.Value("X-Forwarded-For"));
  if (!chain.empty()) chain += ", ";
  headers.Set("X-Forwarded-For", chain + passage.peer_address);
  if (!headers.Has("X-Forwarded-Proto"))
    headers.Set("X-Forwarded-Proto", passage.tls ? "https" : "http");
  if (passage.mask_request_host.empty()) return;
  std::string original(headers.Value("Host"));
  headers.Set("X-Forwarded-Host", original);
  headers.Set("Host", FillPort(passage.mask_request_host, passage.port));
}

}  // namespace

bool IsUpgrade(const http::RequestHead& request) {
  return request.version >= 11 && request.headers.HasToken("Connection", "upgrade") &&
         request.headers.Has("Upgrade");
}

http::RequestHead ForSandbox(http::RequestHead request, const Passage& passage) {
  bool upgrade = IsUpgrade(request);
  std::string protocol(request.headers.Value("Upgrade"));
  StripHopByHop(request.headers);
  // The server has answered, or will answer, "100 Continue" itself.
  request.headers.Remove("Expect");
  StripSecrets(request.headers, passage);
  ExchangeToken(request.headers, passage);
  ExchangeSignature(request, passage);
  AddForwarded(request.headers, passage);
  if (upgrade) {
    request.headers.Set("Connection", "Upgrade");
    request.headers.Set("Upgrade", protocol);
  }
  request.version = 11;
  return request;
}

void ForClient(http::Headers& headers, bool keep_upgrade) {
  std::string protocol(headers.Value("Upgrade"));
  StripHopByHop(headers);
  if (!keep_upgrade) return;
  headers.Set("Connection", "Upgrade");
  headers.Set("Upgrade", protocol);
}

void DistrustContent(http::Headers& headers) {
  headers.Remove("Set-Cookie");
  headers.Set("Content-Security-Policy", "sandbox");
  headers.Set("X-Content-Type-Options", "nosniff");
}

void AllowAnyOrigin(http::Headers& headers) {
  if (headers.Has("Access-Control-Allow-Origin")) return;
  headers.Set("Access-Control-Allow-Origin", "*");
  headers.Set("Access-Control-Expose-Headers", "*");
}

bool IsPreflight(const http::RequestHead& request) {
  return request.method == "OPTIONS" && request.headers.Has("Origin") &&
         request.headers.Has("Access-Control-Request-Method");
}

http::Response AnswerPreflight(const http::RequestHead& request) {
  http::Response response = http::Response::Empty(204);
  AllowAnyOrigin(response.headers);
  response.headers.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
  // "*" would not cover Authorization, which selects the user of a command.
  if (auto names = request.headers.Get("Access-Control-Request-Headers"))
    response.headers.Set("Access-Control-Allow-Headers", *names);
  response.headers.Set("Access-Control-Max-Age", "7200");
  return response;
}

}  // namespace caisson::gateway
