#include "gateway/signature.h"

namespace caisson::gateway {
namespace {

constexpr size_t kLongestExpiration = 20;  // digits of 64 bits

}  // namespace

SignedFields SignedFields::From(const http::RequestHead& request) {
  http::Query query = request.ParsedQuery();
  auto value = [&query](std::string_view name) {
    return std::string(query.Get(name).value_or(""));
  };
  SignedFields fields{
      .path = value("path"),
      .operation = request.method == "GET" || request.method == "HEAD" ? "read" : "write",
      .user = value("username"),
      .signature = value("signature")};
  if (auto expiration = query.Get("signature_expiration")) fields.expiration = *expiration;
  return fields;
}

bool SignedFields::MayBeAnybodys() const {
  return http::IsFileSignature(signature) &&
         (!expiration || expiration->size() <= kLongestExpiration);
}

}  // namespace caisson::gateway
