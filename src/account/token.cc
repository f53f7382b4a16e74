#include "account/token.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/encoding.h"

namespace caisson::account {
namespace {

namespace json = boost::json;

// SECURITY: only this header is accepted, as text: no other algorithm, and none at all.
std::string Header() { return Base64UrlEncode(R"({"alg":"HS256","typ":"JWT"})"); }

// SECURITY: keys are derived by purpose, so a token of one kind is never one of another.
std::string KeyFor(std::string_view secret, std::string_view purpose) {
  return HmacSha256(secret, fmt::format("account:{}", purpose));
}

std::string Signature(std::string_view secret, std::string_view text) {
  return Base64UrlEncode(HmacSha256(KeyFor(secret, "access"), text));
}

}  // namespace

std::string SignAccess(std::string_view secret, const AccessClaims& claims) {
  json::object payload{
      {"sub", claims.user_id}, {"sid", claims.login_id}, {"exp", UnixSeconds(claims.expires_at)}};
  std::string text = Header() + "." + Base64UrlEncode(json::serialize(payload));
  return text + "." + Signature(secret, text);
}

std::optional<AccessClaims> VerifyAccess(std::string_view secret, std::string_view token,
                                         Time now) {
  std::string header = Header() + ".";
  size_t dot = token.rfind('.');
  if (!token.starts_with(header) || dot == std::string_view::npos || dot < header.size())
    return std::nullopt;
  if (!ConstantTimeEqual(token.substr(dot + 1), Signature(secret, token.substr(0, dot))))
    return std::nullopt;
  auto text = Base64Decode(token.substr(header.size(), dot - header.size()));
  boost::system::error_code ec;
  json::value payload = json::parse(text.value_or(""), ec);
  if (ec || !payload.is_object()) return std::nullopt;
  const json::value *user = payload.as_object().if_contains("sub"),
                    *login = payload.as_object().if_contains("sid"),
                    *until = payload.as_object().if_contains("exp");
  if (!user || !user->is_string() || !login || !login->is_string() || !until || !until->is_int64())
    return std::nullopt;
  if (until->as_int64() <= UnixSeconds(now)) return std::nullopt;
  return AccessClaims{std::string(user->as_string()), std::string(login->as_string()),
                      Time(std::chrono::seconds(until->as_int64()))};
}

std::string CsrfToken(std::string_view secret, std::string_view login_id) {
  return HexEncode(HmacSha256(KeyFor(secret, "csrf"), login_id));
}

}  // namespace caisson::account
