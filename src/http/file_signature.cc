#include "http/file_signature.h"

#include "base/encoding.h"

namespace caisson::http {

std::string FileSignature(std::string_view path, std::string_view operation, std::string_view user,
                          std::string_view token, std::optional<std::string_view> expiration) {
  std::string raw = fmt::format("{}:{}:{}:{}", path, operation, user, token);
  if (expiration) raw.append(":").append(*expiration);
  std::string digest = Base64Encode(Sha256(raw));
  while (digest.ends_with('=')) digest.pop_back();
  return "v1_" + digest;
}

}  // namespace caisson::http
