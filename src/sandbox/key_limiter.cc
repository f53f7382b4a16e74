#include "sandbox/key_limiter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace caisson::sandbox {
namespace {

using Seconds = std::chrono::duration<double>;

// Without a limit: as long as requests can ask for.
constexpr std::chrono::seconds kForever{std::numeric_limits<int32_t>::max()};

int64_t RoundUp(TokenBucket::Clock::duration wait) {
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(wait).count());
}

// Where several keys of one user have a limit, the lowest holds; 0 is none.
std::optional<int64_t> Tighter(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return a ? a : b;
  if (*a == 0 || *b == 0) return std::max(*a, *b);
  return std::min(*a, *b);
}

}  // namespace

double TokenBucket::TokensAt(Clock::time_point now) const {
  double seconds = std::max(0.0, Seconds(now - filled_).count());
  return std::min(burst_, tokens_ + seconds * per_second_);
}

TokenBucket::Clock::duration TokenBucket::Wait(Clock::time_point now) const {
  double missing = 1 - TokensAt(now);
  // Less than a nanosecond's worth is a rounding error, not a reason to refuse.
  if (missing <= per_second_ * 1e-9) return Clock::duration::zero();
  return std::chrono::ceil<Clock::duration>(Seconds(missing / per_second_));
}

TokenBucket::Clock::duration TokenBucket::Take(Clock::time_point now) {
  Clock::duration wait = Wait(now);
  if (wait > Clock::duration::zero()) return wait;
  tokens_ = std::max(0.0, TokensAt(now) - 1);
  filled_ = std::max(filled_, now);
  return wait;
}

Task<Status> KeyLimiter::Load(store::Store& store) {
  CO_TRY_ASSIGN(auto keys, co_await store.ListApiKeys());
  std::map<std::string, store::KeyLimits> by_user;
  for (const store::ApiKey& key : keys) {
    if (key.revoked_at) continue;
    store::KeyLimits& limits = by_user[key.user_id.empty() ? key.id : key.user_id];
    for (const auto& [name, field] : store::kKeyLimits)
      limits.*field = Tighter(limits.*field, key.limits.*field);
  }
  for (const auto& [user_id, limits] : own_) by_user.try_emplace(user_id);
  for (const auto& [user_id, limits] : by_user)
    if (limits != OwnLimits(user_id)) Set(user_id, limits);
  co_return Status();
}

void KeyLimiter::Set(const std::string& key_id, const store::KeyLimits& limits) {
  requests_.erase(key_id);
  creates_.erase(key_id);
  if (limits == store::KeyLimits{})
    own_.erase(key_id);
  else
    own_[key_id] = limits;
}

const store::KeyLimits& KeyLimiter::OwnLimits(const std::string& key_id) const {
  static const store::KeyLimits kNone;
  auto it = own_.find(key_id);
  return it == own_.end() ? kNone : it->second;
}

Status KeyLimiter::TakeRequest(const std::string& key_id) {
  const store::KeyLimits& own = OwnLimits(key_id);
  int64_t rate = own.rate_limit.value_or(config_.rate_limit);
  if (rate <= 0) return {};
  int64_t burst = own.rate_burst.value_or(own.rate_limit ? 0 : config_.rate_burst);
  if (burst <= 0) burst = 2 * rate;
  auto now = now_();
  auto it = requests_.try_emplace(key_id, rate, burst, now).first;
  auto wait = it->second.Take(now);
  if (wait == Clock::duration::zero()) return {};
  return Fail(Code::kResourceExhausted,
              "this API key sends more than its {} requests per second; try again in {} s", rate,
              RoundUp(wait));
}

Status KeyLimiter::TakeCreate(const std::string& key_id) {
  int64_t rate = OwnLimits(key_id).create_rate_limit.value_or(config_.create_rate_limit);
  if (rate <= 0) return {};
  auto now = now_();
  auto per_minute = static_cast<double>(rate);
  auto it = creates_.try_emplace(key_id, per_minute / 60, per_minute, now).first;
  auto wait = it->second.Take(now);
  if (wait == Clock::duration::zero()) return {};
  return Fail(Code::kResourceExhausted,
              "this API key starts more than its {} sandboxes per minute; try again in {} s", rate,
              RoundUp(wait));
}

std::chrono::seconds KeyLimiter::LongestTimeout(const std::string& key_id) const {
  int64_t longest = OwnLimits(key_id).max_timeout_s.value_or(config_.max_timeout_s);
  return longest > 0 ? std::min(std::chrono::seconds(longest), kForever) : kForever;
}

int64_t KeyLimiter::MaxSandboxes(const std::string& key_id) const {
  return OwnLimits(key_id).max_sandboxes.value_or(config_.max_sandboxes_per_key);
}

std::chrono::seconds KeyLimiter::RetryAfter(const std::string& key_id) const {
  auto now = now_();
  auto wait = Clock::duration::zero();
  for (const Buckets* buckets : {&requests_, &creates_})
    if (auto it = buckets->find(key_id); it != buckets->end())
      wait = std::max(wait, it->second.Wait(now));
  return std::chrono::seconds(RoundUp(wait));
}

}  // namespace caisson::sandbox
