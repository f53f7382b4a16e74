// Who may use the API. Keys are known by their SHA-256 only, in memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "store/store.h"

namespace caisson::sandbox {

// The id of the first key. It belongs to the role, not to the key's text: the key can be replaced
// and the sandboxes made with the old one stay reachable.
inline constexpr std::string_view kAdminKeyId = "admin";

// A new key: what the store keeps, and the key itself, which is shown once.
struct NewKey {
  store::ApiKey row;
  std::string text;
};
NewKey MakeApiKey(std::string name);

class KeyRing {
 public:
  // Takes the admin key from `configured` (CAISSON_API_KEY) or, if that is empty, from
  // <data_dir>/api-key, which is made at the first start: "e2b_" + 40 hex digits, mode 0600.
  static Result<KeyRing> Open(const std::string& data_dir, const std::string& configured);
  // Adds the keys of the store that are not revoked.
  Task<Status> Load(store::Store& store);

  // The id of the key, or nothing. Takes the same time for any wrong key of the same length.
  std::optional<std::string> Check(std::string_view key) const;

 private:
  struct Entry {
    std::string id;
    std::string hash;  // SHA-256, hex
  };
  std::vector<Entry> entries_;
};

}  // namespace caisson::sandbox
