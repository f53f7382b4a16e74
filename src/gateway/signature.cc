#include "gateway/signature.h"

#include "base/encoding.h"

namespace caisson::gateway {

SignedFields SignedFields::From(const http::RequestHead& request) {
  http::Query query = request.ParsedQuery();
  auto value = [&query](std::string_view name) {
    return std::string(query.Get(name).value_or(""));
  };
  return {.path = value("path"),
          .operation = request.method == "GET" || request.method == "HEAD" ? "read" : "write",
          .user = value("username"),
          .expiration = value("signature_expiration"),
          .signature = value("signature")};
}

std::string Sign(const SignedFields& fields, std::string_view token) {
  std::string raw = fmt::format("{}:{}:{}:{}", fields.path, fields.operation, fields.user, token);
  if (!fields.expiration.empty()) raw += ":" + fields.expiration;
  std::string encoded = Base64Encode(Sha256(raw));
  encoded.erase(encoded.find_last_not_of('=') + 1);
  return "v1_" + encoded;
}

bool IsSignedWith(const SignedFields& fields, std::string_view token) {
  return ConstantTimeEqual(fields.signature, Sign(fields, token));
}

}  // namespace caisson::gateway
