// How often a login may fail: by address and by name.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace caisson::account {

class FailureLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  // Tests bring their own clock. 0 = unlimited.
  explicit FailureLimit(int64_t per_minute, Now now = Clock::now)
      : per_minute_(per_minute), now_(std::move(now)) {}

  // Zero if `subject` may try now, else how long it has to wait.
  std::chrono::seconds Wait(const std::string& subject) const;
  void Add(const std::string& subject);
  // A success forgives.
  void Clear(const std::string& subject) { failures_.erase(subject); }

 private:
  struct Window {
    Clock::time_point begun;
    int64_t count = 0;
  };
  bool Over(const Window& window) const;

  const int64_t per_minute_;
  const Now now_;
  std::map<std::string, Window> failures_;
};

}  // namespace caisson::account
