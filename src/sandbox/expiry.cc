#include "sandbox/expiry.h"

namespace caisson::sandbox {
namespace {

// Ends are wall-clock times, timers are not: looking again this often follows a clock that is set.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(10);

}  // namespace

Expiry::Expiry(asio::any_io_executor executor, std::function<void(std::string)> expired)
    : expired_(std::move(expired)), changed_(std::move(executor)) {}

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
    Time now = Now();
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
