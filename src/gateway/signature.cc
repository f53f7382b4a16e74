#include "gateway/signature.h"

#include "base/encoding.h"
#include "http/file_signature.h"

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
  std::optional<std::string_view> expiration;
  if (!fields.expiration.empty()) expiration = fields.expiration;
  return http::FileSignature(fields.path, fields.operation, fields.user, token, expiration);
}

bool IsSignedWith(const SignedFields& fields, std::string_view token) {
  return ConstantTimeEqual(fields.signature, Sign(fields, token));
}

}  // namespace caisson::gateway
