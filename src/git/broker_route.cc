#include "git/broker_route.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::git {
namespace {

constexpr std::string_view kModelPrefix = "/model/";
constexpr size_t kMaxTarget = 8000;
constexpr size_t kMaxHeader = 2000;

Route Refuse(unsigned status, std::string message) {
  return {.status = status, .message = std::move(message)};
}

// SECURITY: a target that two readers could take for different paths is refused, not cleaned up.
bool IsPlainPath(std::string_view path) {
  if (!path.starts_with('/') || path.size() > kMaxTarget) return false;
  for (char c : path)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f || c == '\\')
      return false;
  for (std::string_view part : Split(path.substr(1), '/')) {
    auto decoded = PercentDecode(part);
    if (!decoded || *decoded == "." || *decoded == ".." ||
        decoded->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return false;
  }
  return true;
}

Route FindModel(const http::RequestHead& request, const std::vector<ModelRoute>& models) {
  std::string_view rest = request.Path().substr(kModelPrefix.size());
  std::string_view name = rest.substr(0, rest.find('/'));
  for (const ModelRoute& model : models) {
    if (model.name != name) continue;
    Route route{.kind = Route::Kind::kModel, .model = &model};
    // What is behind the name, with the query, is appended to the path of the base URL.
    route.target = request.target.substr(kModelPrefix.size() + name.size());
    if (!route.target.starts_with('/')) route.target.insert(0, "/");
    return route;
  }
  return Refuse(404, "There is no route to a model of this name here.");
}

// The path behind "/OWNER/NAME.git", if it is the repository of this sandbox.
std::optional<std::string_view> BehindRepository(std::string_view path,
                                                 const Repository& repository) {
  if (repository.is_scratch()) return std::nullopt;
  std::string_view rest = path.substr(1);
  std::string name = repository.full_name();
  if (rest.size() < name.size() || !EqualsIgnoreCase(rest.substr(0, name.size()), name))
    return std::nullopt;
  rest.remove_prefix(name.size());
  if (rest.starts_with(".git/")) rest.remove_prefix(4);
  if (!rest.starts_with('/')) return std::nullopt;
  return rest;
}

bool Listed(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view one) { return EqualsIgnoreCase(one, name); });
}

// Those whose names stand in the request's own Connection header.
bool IsConnectionOption(const http::Headers& headers, std::string_view name) {
  return headers.HasToken("Connection", name);
}

}  // namespace

Route FindRoute(const http::RequestHead& request, const Grant& grant,
                const std::vector<ModelRoute>& models) {
  using Kind = Route::Kind;
  std::string_view path = request.Path();
  if (!IsPlainPath(path)) return Refuse(400, "This is not a path that is served here.");
  if (path.starts_with(kModelPrefix)) return FindModel(request, models);
  auto rest = BehindRepository(path, grant.repository);
  if (!rest && grant.repository.is_scratch())
    return Refuse(403, "This sandbox has no repository to fetch or push.");
  if (!rest)
    return Refuse(403, fmt::format("This sandbox may use the repository {} only.",
                                   grant.repository.full_name()));
  if (rest->starts_with("/info/lfs") || rest->starts_with("/objects/batch"))
    return Refuse(501, "Git LFS is not supported here.");

  bool get = request.method == "GET", post = request.method == "POST";
  std::string_view query = request.QueryString();
  Kind kind = Kind::kRefused;
  if (get && *rest == "/info/refs" && query == "service=git-upload-pack") kind = Kind::kUploadRefs;
  if (get && *rest == "/info/refs" && query == "service=git-receive-pack")
    kind = Kind::kReceiveRefs;
  if (post && *rest == "/git-upload-pack" && query.empty()) kind = Kind::kUpload;
  if (post && *rest == "/git-receive-pack" && query.empty()) kind = Kind::kReceive;
  if (kind == Kind::kRefused)
    return Refuse(403, "Only git's smart protocol is served here: clone, fetch and push.");
  bool push = kind == Kind::kReceiveRefs || kind == Kind::kReceive;
  if (push && grant.push_prefixes.empty()) return Refuse(403, "This sandbox may not push.");
  return {.kind = kind};
}

http::Headers GitRequestHeaders(const http::Headers& from_inside) {
  http::Headers headers;
  // SECURITY: a list of what passes: no Authorization, no Cookie, no Host of the sender's choice.
  for (const auto& [name, value] : from_inside) {
    if (value.size() > kMaxHeader || IsConnectionOption(from_inside, name)) continue;
    if (Listed(name, {"Accept", "Accept-Encoding", "Accept-Language", "Content-Type",
                      "Content-Encoding", "Git-Protocol", "User-Agent"}))
      headers.Add(name, value);
  }
  return headers;
}

http::Headers GitResponseHeaders(const http::Headers& from_outside) {
  http::Headers headers;
  // SECURITY: cookies, challenges and redirections of the forge are not for the sandbox.
  for (const auto& [name, value] : from_outside)
    if (Listed(name, {"Content-Type", "Content-Encoding", "Cache-Control", "Expires", "Pragma",
                      "Retry-After"}))
      headers.Add(name, value);
  return headers;
}

http::Headers ModelRequestHeaders(const http::Headers& from_inside, const ModelRoute& model) {
  http::Headers headers;
  for (const auto& [name, value] : from_inside) {
    bool dropped =
        IsConnectionOption(from_inside, name) || EqualsIgnoreCase(name, model.header) ||
        ToLower(name).starts_with("proxy-") || ToLower(name).starts_with("x-forwarded-") ||
        Listed(name, {"Host", "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie",
                      "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
                      "Expect", "Content-Length", "Forwarded"});
    if (!dropped) headers.Add(name, value);
  }
  headers.Set(model.header, model.value);
  return headers;
}

http::Headers ModelResponseHeaders(const http::Headers& from_outside) {
  http::Headers headers;
  for (const auto& [name, value] : from_outside) {
    bool dropped = IsConnectionOption(from_outside, name) ||
                   Listed(name, {"Set-Cookie", "WWW-Authenticate", "Proxy-Authenticate", "Location",
                                 "Alt-Svc", "Strict-Transport-Security", "Connection", "Keep-Alive",
                                 "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"});
    if (!dropped) headers.Add(name, value);
  }
  return headers;
}

}  // namespace caisson::git
