#include "sdk/api_keys.h"

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::sdk {
namespace {

constexpr size_t kIdDigits = 8;

}  // namespace

ApiKeys::ApiKeys(std::string_view list) {
  for (std::string_view part : Split(list, ',')) {
    std::string text(Trim(part));
    if (text.empty()) continue;
    std::string id = HexEncode(Sha256(text)).substr(0, kIdDigits);
    keys_.push_back({.text = std::move(text), .use = {.id = std::move(id)}});
  }
}

void ApiKeys::Count(size_t number, bool refused) {
  Key& key = keys_[number];
  ++key.use.calls;
  if (refused) ++key.use.refused;
  bool news = refused && !key.bad;
  key.bad = refused;
  // Calls that were under way when another one moved on change nothing.
  if (refused && number == current_) current_ = (current_ + 1) % keys_.size();
  if (!news || !on_refused_) return;
  const Key& next = keys_[current_];
  on_refused_(key.use.id, next.bad ? "" : next.use.id);
}

std::vector<ApiKeyUse> ApiKeys::Uses() const {
  std::vector<ApiKeyUse> uses;
  for (size_t i = 0; i < keys_.size(); ++i) {
    uses.push_back(keys_[i].use);
    uses.back().current = i == current_;
  }
  return uses;
}

}  // namespace caisson::sdk
