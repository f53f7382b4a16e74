#include "envd/auth.h"

#include "base/encoding.h"
#include "base/text.h"
#include "http/file_signature.h"

namespace caisson::envd {
namespace {

// The user name of "Basic base64(name:password)"; nothing if the header is absent or of another
// kind. The password is ignored.
std::optional<std::string> BasicUser(const http::RequestHead& request) {
  std::string_view header = request.headers.Value("Authorization");
  constexpr std::string_view kBasic = "basic ";
  if (header.size() < kBasic.size() || !EqualsIgnoreCase(header.substr(0, kBasic.size()), kBasic))
    return std::nullopt;
  auto text = Base64Decode(Trim(header.substr(kBasic.size())));
  if (!text) return std::nullopt;
  size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return text->substr(0, colon);
}

}  // namespace

bool HasToken(const http::RequestHead& request, const Settings& settings) {
  if (settings.access_token.empty()) return true;
  return ConstantTimeEqual(request.headers.Value(kTokenHeader), settings.access_token);
}

Status CheckFileAccess(const http::RequestHead& request, const http::Query& query,
                       std::string_view operation, const Settings& settings, Time now) {
  if (settings.access_token.empty()) return {};
  if (!request.headers.Value(kTokenHeader).empty()) {
    if (HasToken(request, settings)) return {};
    return Fail(Code::kUnauthenticated, "access token present in header but does not match");
  }
  auto signature = query.Get("signature");
  if (!signature) return Fail(Code::kUnauthenticated, "missing signature query parameter");
  auto expiration = query.Get("signature_expiration");
  http::FileSigner signer(query.Get("path").value_or(""), operation,
                          query.Get("username").value_or(""), expiration);
  if (!signer.Made(*signature, settings.access_token))
    return Fail(Code::kUnauthenticated, "invalid signature");
  if (expiration) {
    auto until = ParseInt<int64_t>(*expiration);
    if (!until) return Fail(Code::kUnauthenticated, "invalid signature");
    if (*until < UnixSeconds(now))
      return Fail(Code::kUnauthenticated, "signature is already expired");
  }
  return {};
}

Result<User> RpcUser(const http::RequestHead& request, const Settings& settings) {
  std::string name = BasicUser(request).value_or("");
  if (name.empty()) name = settings.default_user;
  const auto accounts = Accounts::Current();
  const User* user = accounts->Find(name);
  if (user == nullptr) return Fail(Code::kUnauthenticated, "invalid username: '{}'", name);
  return *user;
}

Result<User> FileUser(std::optional<std::string_view> username, const Settings& settings) {
  std::string name(username.value_or(""));
  if (name.empty()) name = settings.default_user;
  const auto accounts = Accounts::Current();
  const User* user = accounts->Find(name);
  if (user == nullptr)
    return Fail(Code::kUnauthenticated, "error looking up user '{}': user: unknown user {}", name,
                name);
  return *user;
}

}  // namespace caisson::envd
