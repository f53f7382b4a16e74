// Finding the sandbox of a signed /files URL (http/file_signature.h) when nothing else names it.
// Whether the signature still holds is envd's matter.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::gateway {

// What was signed, apart from the token.
struct SignedFields {
  std::string path;
  std::string operation;   // "read" or "write"
  std::string user;        // "" if the URL names none
  std::string expiration;  // unix seconds as sent; "" if the URL has none
  std::string signature;   // what the URL claims

  static SignedFields From(const http::RequestHead& request);
};

std::string Sign(const SignedFields& fields, std::string_view token);
// Whether `fields.signature` was made with `token`; takes the same time whatever differs.
bool IsSignedWith(const SignedFields& fields, std::string_view token);

}  // namespace caisson::gateway
