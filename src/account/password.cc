#include "account/password.h"

#include <argon2.h>

#include <array>

#include "base/id.h"

namespace caisson::account {
namespace {

// The smallest of the settings that OWASP's password guide calls equally strong for argon2id:
// 19 MiB and two passes take about 30 ms here. More memory would let a handful of logins at once
// weigh as much as a sandbox.
constexpr uint32_t kMemoryKib = 19'456, kPasses = 2, kLanes = 1;
constexpr size_t kSaltBytes = 16, kHashBytes = 32;
// One thread each; more logins wait, and a flood of them is refused.
constexpr size_t kThreads = 2;
constexpr int kMaxWaiting = 64;

Result<std::string> HashNow(const std::string& password) {
  std::array<char, kSaltBytes> salt;
  FillRandom(salt.data(), salt.size());
  std::string text(
      argon2_encodedlen(kPasses, kMemoryKib, kLanes, kSaltBytes, kHashBytes, Argon2_id), '\0');
  int failed =
      argon2id_hash_encoded(kPasses, kMemoryKib, kLanes, password.data(), password.size(),
                            salt.data(), salt.size(), kHashBytes, text.data(), text.size());
  if (failed) return Fail(Code::kInternal, "hashing failed: {}", argon2_error_message(failed));
  text.resize(text.find('\0'));
  return text;
}

// SECURITY: what is compared with when there is no such user, so that names cannot be found by
// timing. It is of a password nobody knows.
const std::string& NobodysHash() {
  static const std::string kHash = HashNow(RandomHex(32)).value_or("");
  return kHash;
}

bool VerifyNow(const std::string& hash, const std::string& password) {
  const std::string& against = hash.empty() ? NobodysHash() : hash;
  bool same = argon2id_verify(against.c_str(), password.data(), password.size()) == ARGON2_OK;
  return same && !hash.empty();
}

}  // namespace

PasswordHasher::PasswordHasher() : pool_(kThreads) {}

PasswordHasher::~PasswordHasher() { pool_.join(); }

Status PasswordHasher::Enter() {
  if (waiting_ >= kMaxWaiting)
    return Fail(Code::kResourceExhausted, "too many logins at once: try again in a second");
  ++waiting_;
  return {};
}

Task<Result<std::string>> PasswordHasher::Hash(std::string password) {
  if (password.size() < kMinPassword || password.size() > kMaxPassword)
    co_return Fail(Code::kInvalidArgument, "a password has {} to {} characters", kMinPassword,
                   kMaxPassword);
  CO_TRY(Enter());
  auto hash = co_await RunBlocking(pool_, [password] { return HashNow(password); });
  --waiting_;
  co_return hash;
}

Task<Result<bool>> PasswordHasher::Verify(std::string hash, std::string password) {
  if (password.size() > kMaxPassword) password.clear();
  CO_TRY(Enter());
  bool same = co_await RunBlocking(pool_, [hash, password] { return VerifyNow(hash, password); });
  --waiting_;
  co_return same;
}

}  // namespace caisson::account
