#include "sandbox/expiry.h"

namespace caisson::sandbox {
namespace {

// Timers do not follow a clock that is set: so often it is looked at.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(10);
// Less is a clock that is a little too fast or too slow.
constexpr std::chrono::nanoseconds kSmallestJump = std::chrono::seconds(2);
// Both clocks were read at the same time, and not before and after a long stop of this process.
constexpr std::chrono::nanoseconds kSameTime = std::chrono::milliseconds(100);

}  // namespace

Expiry::Expiry(asio::any_io_executor executor, Expired expired, Moved moved, Clock clock)
    : expired_(std::move(expired)),
      moved_(std::move(moved)),
      clock_(std::move(clock)),
      last_(ReadClocks()),
      changed_(std::move(executor)) {}

Expiry::Reading Expiry::ReadClocks() const {
  for (;;) {
    auto before = std::chrono::steady_clock::now();
    Time wall = clock_();
    if (std::chrono::steady_clock::now() - before < kSameTime) return {wall, before};
  }
}

void Expiry::FollowClock() {
  Reading now = ReadClocks(), before = std::exchange(last_, now);
  std::chrono::nanoseconds jump = (now.wall - before.wall) - (now.steady - before.steady);
  if (std::chrono::abs(jump) < kSmallestJump) return;
  std::set<std::pair<Time, std::string>> moved;
  for (const auto& [end, id] : ends_) moved.emplace(end + jump, id);
  ends_ = std::move(moved);
  for (auto& [id, end] : end_of_) {
    end += jump;
    moved_(id, jump);
  }
}

void Expiry::Set(const std::string& id, Time end) {
  Remove(id);
  bool earliest = ends_.empty() || end < ends_.begin()->first;
  ends_.emplace(end, id);
  end_of_.emplace(id, end);
  if (earliest) changed_.Notify();
}

void Expiry::Remove(const std::string& id) {
  auto it = end_of_.find(id);
  if (it == end_of_.end()) return;
  ends_.erase({it->second, id});
  end_of_.erase(it);
}

Task<void> Expiry::Loop() {
  for (;;) {
    FollowClock();
    Time now = last_.wall;
    while (!ends_.empty() && ends_.begin()->first <= now) {
      std::string id = ends_.begin()->second;
      Remove(id);
      expired_(id);
    }
    auto wait = kLongestWait;
    if (!ends_.empty()) wait = std::min(wait, ends_.begin()->first - now);
    co_await changed_.Wait(std::chrono::steady_clock::now() + wait);
  }
}

}  // namespace caisson::sandbox
