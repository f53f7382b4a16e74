// Signatures of /files URLs: how an SDK's downloadUrl() and uploadUrl() prove that their maker knew
// the sandbox's access token. envd checks them (and their expiry); the gateway only uses them to
// find the sandbox when nothing else names it.
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

// "v1_" + unpadded base64 of SHA-256 over path:operation:user:token[:expiration].
std::string Sign(const SignedFields& fields, std::string_view token);
// Whether `fields.signature` was made with `token`; takes the same time whatever differs.
bool IsSignedWith(const SignedFields& fields, std::string_view token);

}  // namespace caisson::gateway
