#include "sandbox/key_ring.h"

#include "base/encoding.h"
#include "base/file.h"
#include "base/id.h"
#include "base/text.h"

namespace caisson::sandbox {
namespace {

// Short keys can be guessed: SHA-256 is fast on purpose and protects only long random ones.
constexpr size_t kMinKeyLength = 20;
constexpr size_t kHintLength = 8;

std::string Hash(std::string_view key) { return HexEncode(Sha256(key)); }

std::string RandomKey() { return "e2b_" + RandomHex(20); }

Result<std::string> ReadOrMakeKey(const std::string& path) {
  auto read = ReadFile(path, 4096);
  if (!read && read.error().code() == Code::kNotFound) {
    std::string made = RandomKey();
    TRY(WriteFileAtomic(path, made + "\n", 0600));
    return made;
  }
  TRY_ASSIGN(std::string text, std::move(read));
  return std::string(Trim(text));
}

}  // namespace

NewKey MakeApiKey(std::string name) {
  std::string text = RandomKey();
  return {{.id = RandomId("k", 12),
           .name = std::move(name),
           .hash = Hash(text),
           .hint = text.substr(0, kHintLength) + "…",
           .created_at = Now()},
          text};
}

Result<KeyRing> KeyRing::Open(const std::string& data_dir, const std::string& configured) {
  std::string path = data_dir + "/api-key", key = configured;
  if (key.empty()) {
    TRY_ASSIGN(key, ReadOrMakeKey(path));
  }
  if (key.size() < kMinKeyLength)
    return Fail(Code::kInvalidArgument,
                "the API key in {} is too short: use at least {} characters",
                configured.empty() ? path : "CAISSON_API_KEY", kMinKeyLength);
  KeyRing ring;
  ring.entries_.push_back({std::string(kAdminKeyId), Hash(key)});
  return ring;
}

Task<Status> KeyRing::Load(store::Store& store) {
  CO_TRY_ASSIGN(auto keys, co_await store.ListApiKeys());
  for (const store::ApiKey& key : keys)
    if (!key.revoked_at) entries_.push_back({key.id, key.hash});
  co_return Status();
}

std::optional<std::string> KeyRing::Check(std::string_view key) const {
  // SECURITY: all entries are compared, whichever fits, so the time tells nothing about the ring.
  std::string hash = Hash(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (ConstantTimeEqual(entry.hash, hash)) found = &entry;
  if (!found) return std::nullopt;
  return found->id;
}

}  // namespace caisson::sandbox
