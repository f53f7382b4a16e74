// The signature of a /files URL (http/file_signature.h) as a request has it: by it the gateway
// finds the sandbox when nothing else names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/file_signature.h"
#include "http/message.h"

namespace caisson::gateway {

// What was signed, apart from the token.
struct SignedFields {
  std::string path;
  std::string operation;                  // "read" or "write"
  std::string user;                       // "" if the URL names none
  std::optional<std::string> expiration;  // unix seconds as sent
  std::string signature;                  // what the URL claims

  static SignedFields From(const http::RequestHead& request);
  // Whether it is worth trying the tokens of all sandboxes: what is signed behind the token is
  // hashed for each of them, so it must be short.
  bool MayBeAnybodys() const;
  http::FileSigner signer() const { return {path, operation, user, expiration}; }
};

}  // namespace caisson::gateway
