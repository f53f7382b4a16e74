// Signatures of /files URLs: how an SDK's downloadUrl() and uploadUrl() prove that their maker knew
// the sandbox's access token. envd checks them; the gateway finds the sandbox by them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/encoding.h"

namespace caisson::http {

// "v1_" + unpadded base64 of SHA-256 over path:operation:user:token[:expiration]. `operation` is
// "read" or "write"; `expiration` is unix seconds as text, or nothing.
class FileSigner {
 public:
  FileSigner(std::string_view path, std::string_view operation, std::string_view user,
             std::optional<std::string_view> expiration);
  std::string Sign(std::string_view token) const;
  // Whether it was made with this token; takes the same time whatever differs.
  bool Made(std::string_view signature, std::string_view token) const;

 private:
  Sha256After beginning_;
  std::string end_;
};

// Whether it could be one at all. To be asked before many tokens are tried.
bool IsFileSignature(std::string_view text);

}  // namespace caisson::http
