#include "http/file_signature.h"

#include <algorithm>

namespace caisson::http {
namespace {

constexpr std::string_view kVersion = "v1_";
constexpr size_t kDigestChars = 43;  // 32 bytes in base64, without padding

}  // namespace

FileSigner::FileSigner(std::string_view path, std::string_view operation, std::string_view user,
                       std::optional<std::string_view> expiration)
    : beginning_(fmt::format("{}:{}:{}:", path, operation, user)),
      end_(expiration ? fmt::format(":{}", *expiration) : "") {}

std::string FileSigner::Sign(std::string_view token) const {
  std::string digest = Base64Encode(beginning_.Of(std::string(token) + end_));
  digest.resize(kDigestChars);
  return std::string(kVersion) + digest;
}

bool FileSigner::Made(std::string_view signature, std::string_view token) const {
  return ConstantTimeEqual(signature, Sign(token));
}

bool IsFileSignature(std::string_view text) {
  if (!text.starts_with(kVersion) || text.size() != kVersion.size() + kDigestChars) return false;
  text.remove_prefix(kVersion.size());
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  });
}

}  // namespace caisson::http
