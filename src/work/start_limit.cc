#include "work/start_limit.h"

namespace caisson::work {
namespace {

constexpr std::chrono::minutes kWindow{1};

}  // namespace

Status StartLimit::Take(const std::string& user_id) {
  if (config_.start_rate_limit <= 0) return {};
  auto now = now_();
  auto& starts = starts_[user_id];
  while (!starts.empty() && now - starts.front() >= kWindow) starts.pop_front();
  if (starts.size() >= static_cast<size_t>(config_.start_rate_limit))
    return Fail(Code::kResourceExhausted,
                "you may start {} things per minute (start_rate_limit); try again in {} s",
                config_.start_rate_limit, RetryAfter(user_id).count());
  starts.push_back(now);
  return {};
}

void StartLimit::GiveBack(const std::string& user_id) {
  auto starts = starts_.find(user_id);
  if (starts != starts_.end() && !starts->second.empty()) starts->second.pop_back();
}

std::chrono::seconds StartLimit::RetryAfter(const std::string& user_id) const {
  auto starts = starts_.find(user_id);
  auto limit = static_cast<size_t>(std::max<int64_t>(config_.start_rate_limit, 0));
  if (limit == 0 || starts == starts_.end() || starts->second.size() < limit) return {};
  auto wait = starts->second.front() + kWindow - now_();
  return std::max(std::chrono::ceil<std::chrono::seconds>(wait), std::chrono::seconds(0));
}

}  // namespace caisson::work
