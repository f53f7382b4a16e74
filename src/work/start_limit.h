// How many things a user may start per minute: tasks, messages of sessions, builds (OA-19).
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "base/config.h"
#include "base/error.h"

namespace caisson::work {

class StartLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  // `config` outlives it; start_rate_limit 0 = unlimited. Tests bring their own clock.
  explicit StartLimit(const Config& config, Now now = Clock::now)
      : config_(config), now_(std::move(now)) {}

  // Counts a start; kResourceExhausted if the last minute holds enough of them.
  Status Take(const std::string& user_id);
  // The start that was counted last did not come about.
  void GiveBack(const std::string& user_id);
  // Zero if the user may start something now.
  std::chrono::seconds RetryAfter(const std::string& user_id) const;

 private:
  const Config& config_;
  const Now now_;
  // Of the last minute: never more than the limit for each user.
  std::map<std::string, std::deque<Clock::time_point>> starts_;
};

}  // namespace caisson::work
