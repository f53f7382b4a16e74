// The keys a server is called with. The first is used until it is refused; then the next, without a
// restart, so that a key can be replaced while the server runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace caisson::sdk {

// What is told of a key. SECURITY: the id is the beginning of its hash.
struct ApiKeyUse {
  std::string id;
  uint64_t calls = 0;
  uint64_t refused = 0;  // of these
  bool current = false;
};

class ApiKeys {
 public:
  // A key was refused that was not before; `next` is used from now on, "" = all are refused.
  using Refused = std::function<void(const std::string& id, const std::string& next)>;

  // "KEY" or "KEY, KEY".
  explicit ApiKeys(std::string_view list);

  bool empty() const { return keys_.empty(); }
  size_t size() const { return keys_.size(); }
  void OnRefused(Refused handler) { on_refused_ = std::move(handler); }

  // SECURITY: goes into one header and nowhere else.
  const std::string& Current() const { return keys_[current_].text; }
  size_t CurrentNumber() const { return current_; }
  // How a call with key number `number` ended. A refusal of the current one moves on to the next.
  void Count(size_t number, bool refused);
  std::vector<ApiKeyUse> Uses() const;

 private:
  struct Key {
    std::string text;
    ApiKeyUse use;
    bool bad = false;  // its last call was refused
  };
  std::vector<Key> keys_;
  size_t current_ = 0;
  Refused on_refused_;
};

}  // namespace caisson::sdk
