#include "account/failure_limit.h"

#include <algorithm>

namespace caisson::account {
namespace {

constexpr std::chrono::seconds kWindow{60};
// Subjects that are remembered; the oldest is forgotten when there are more.
constexpr size_t kMaxSubjects = 10'000;

}  // namespace

bool FailureLimit::Over(const Window& window) const { return now_() - window.begun >= kWindow; }

std::chrono::seconds FailureLimit::Wait(const std::string& subject) const {
  auto it = failures_.find(subject);
  if (it == failures_.end() || Over(it->second)) return std::chrono::seconds(0);
  if (per_minute_ <= 0 || it->second.count < per_minute_) return std::chrono::seconds(0);
  auto left = std::chrono::ceil<std::chrono::seconds>(it->second.begun + kWindow - now_());
  return std::max(left, std::chrono::seconds(1));
}

void FailureLimit::Add(const std::string& subject) {
  auto it = failures_.find(subject);
  if (it == failures_.end() && failures_.size() >= kMaxSubjects) {
    std::erase_if(failures_, [this](const auto& entry) { return Over(entry.second); });
    if (failures_.size() >= kMaxSubjects)
      failures_.erase(std::min_element(
          failures_.begin(), failures_.end(),
          [](const auto& a, const auto& b) { return a.second.begun < b.second.begun; }));
  }
  Window& window = failures_[subject];
  if (window.count == 0 || Over(window)) window = {now_(), 0};
  ++window.count;
}

}  // namespace caisson::account
