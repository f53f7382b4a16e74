// API keys: which user sends this one. Keys are known by their SHA-256 only, in memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "store/account_rows.h"
#include "store/store.h"

namespace caisson::account {

// The user of the server's first key, and the id of that key. It belongs to the role, not to the
// key's text: the key can be replaced and what was made with the old one stays reachable.
inline constexpr std::string_view kAdminId = "admin";

// Whose key this is. Everything made with it belongs to that user, whichever of their keys it was.
inline const std::string& UserOf(const store::ApiKey& key) {
  return key.user_id.empty() ? key.id : key.user_id;
}

// A new key: what the store keeps, and the key itself, which is shown once.
struct NewKey {
  store::ApiKey row;
  std::string text;
};
NewKey MakeApiKey(std::string name);

struct KeyHolder {
  std::string user_id;
  std::string key_id;
  std::string role;  // of the user: "admin", "member", "viewer"
};

class KeyRing {
 public:
  // Takes the admin key from `configured` (CAISSON_API_KEY) or, if that is empty, from
  // <data_dir>/api-key, which is made at the first start: "e2b_" + 40 hex digits, mode 0600.
  static Result<KeyRing> Open(const std::string& data_dir, const std::string& configured);
  // Replaces the others by those of the store that are not revoked and whose user is not disabled.
  Task<Status> Load(store::Store& store);

  // Nothing if the key opens nothing. Takes the same time for any wrong key of the same length.
  std::optional<KeyHolder> Check(std::string_view key) const;
  // Whether the key with this SHA-256 (hex) still opens something.
  bool Holds(std::string_view hash) const;
  // Whether the key with this id still opens something.
  bool HasKey(std::string_view key_id) const;
  // `used` is called with the id of a key of the store when it is used, at most once a minute.
  void OnUse(std::function<void(const std::string& key_id)> used) { used_ = std::move(used); }

 private:
  struct Entry {
    KeyHolder holder;
    std::string hash;  // SHA-256, hex
    mutable std::optional<std::chrono::steady_clock::time_point> noted = {};
  };
  void NoteUse(const Entry& entry) const;

  std::vector<Entry> entries_;  // the first is the server's own
  std::function<void(const std::string&)> used_;
};

}  // namespace caisson::account
