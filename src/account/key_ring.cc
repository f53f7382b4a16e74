#include "account/key_ring.h"

#include <map>

#include "base/encoding.h"
#include "base/file.h"
#include "base/id.h"
#include "base/text.h"

namespace caisson::account {
namespace {

// Short keys can be guessed: SHA-256 is fast on purpose and protects only long random ones.
constexpr size_t kMinKeyLength = 20;
constexpr size_t kHintLength = 8;
constexpr std::chrono::seconds kNoteEvery{60};

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
  std::string admin(kAdminId);
  ring.entries_.push_back({{admin, admin, "admin"}, Hash(key)});
  return ring;
}

Task<Status> KeyRing::Load(store::Store& store) {
  CO_TRY_ASSIGN(auto keys, co_await store.ListApiKeys());
  CO_TRY_ASSIGN(auto users, co_await store.Read([](store::Transaction& tx) {
    return tx.List(store::Select<store::UserRow>());
  }));
  std::map<std::string, const store::UserRow*> by_id;
  for (const store::UserRow& user : users) by_id[user.id] = &user;
  std::map<std::string, std::optional<std::chrono::steady_clock::time_point>> noted;
  for (const Entry& entry : entries_) noted[entry.holder.key_id] = entry.noted;
  entries_.resize(1);
  for (const store::ApiKey& key : keys) {
    auto user = by_id.find(UserOf(key));
    bool disabled = user != by_id.end() && user->second->disabled_at;
    if (key.revoked_at || disabled) continue;
    std::string role = user == by_id.end() ? "member" : user->second->role;
    entries_.push_back({{UserOf(key), key.id, std::move(role)}, key.hash, noted[key.id]});
  }
  co_return Status();
}

std::optional<KeyHolder> KeyRing::Check(std::string_view key) const {
  // SECURITY: all entries are compared, whichever fits, so the time tells nothing about the ring.
  std::string hash = Hash(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (ConstantTimeEqual(entry.hash, hash)) found = &entry;
  if (!found) return std::nullopt;
  if (found != &entries_.front()) NoteUse(*found);
  return found->holder;
}

bool KeyRing::HasKey(std::string_view key_id) const {
  return std::ranges::any_of(entries_,
                             [&](const Entry& entry) { return entry.holder.key_id == key_id; });
}

bool KeyRing::Holds(std::string_view hash) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.hash == hash; });
}

void KeyRing::NoteUse(const Entry& entry) const {
  auto now = std::chrono::steady_clock::now();
  if (!used_ || (entry.noted && now - *entry.noted < kNoteEvery)) return;
  entry.noted = now;
  used_(entry.holder.key_id);
}

}  // namespace caisson::account
