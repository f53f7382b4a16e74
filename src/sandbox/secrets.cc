#include "sandbox/secrets.h"

#include "base/encoding.h"
#include "base/file.h"
#include "base/id.h"
#include "base/text.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kSecretBytes = 32;

// SECURITY: the purpose is part of what is signed, so one kind of token is never another.
std::string Derive(std::string_view secret, std::string_view purpose, std::string_view id) {
  return HexEncode(HmacSha256(secret, fmt::format("{}:{}", purpose, id)));
}

}  // namespace

Result<std::string> LoadSecret(const std::string& data_dir) {
  std::string path = data_dir + "/secret";
  auto read = ReadFile(path, 4096);
  if (!read && read.error().code() == Code::kNotFound) {
    std::string made = RandomHex(kSecretBytes);
    TRY(WriteFileAtomic(path, made + "\n", 0600));
    return made;
  }
  TRY_ASSIGN(std::string text, std::move(read));
  std::string secret(Trim(text));
  if (secret.size() < 2 * kSecretBytes)
    return Fail(Code::kDataLoss,
                "{} is too short to be the server's secret: restore it from a backup, or delete it "
                "to make a new one (clients of running sandboxes then have to connect again)",
                path);
  return secret;
}

std::string AccessToken(std::string_view secret, std::string_view sandbox_id) {
  return Derive(secret, "envd", sandbox_id);
}

std::string InsideToken(std::string_view secret, std::string_view sandbox_id) {
  return Derive(secret, "inside", sandbox_id);
}

std::string TrafficToken(std::string_view secret, std::string_view sandbox_id) {
  return Derive(secret, "traffic", sandbox_id);
}

}  // namespace caisson::sandbox
