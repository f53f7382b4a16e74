#include "http/watchdog.h"

#include <algorithm>

namespace caisson::http {

using Clock = Stream::Clock;
constexpr std::chrono::milliseconds kAgain{20};

struct Watchdog::State : std::enable_shared_from_this<State> {
  explicit State(Stream& watched) : stream(&watched), timer(watched.executor()) {}

  Clock::time_point Deadline() const {
    return (by_progress ? std::max(since, stream->last_progress()) : since) + timeout;
  }

  void Arm(Clock::time_point at) {
    armed = true;
    timer.expires_at(at);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
      if (!ec) self->Look();
    });
  }

  void Look() {
    armed = false;
    if (!stream || scopes == 0) return;
    if (Clock::time_point deadline = Deadline(); deadline > Clock::now()) return Arm(deadline);
    expired = true;
    stream->Cancel();
    // Nothing may have been pending at this moment (the owner was in between two operations).
    Arm(Clock::now() + kAgain);
  }

  Stream* stream;  // null once the owner is gone
  asio::steady_timer timer;
  bool armed = false;
  bool expired = false;
  bool by_progress = false;
  int scopes = 0;
  Clock::time_point since;
  std::chrono::milliseconds timeout{};
};

Watchdog::Watchdog(Stream& stream) : state_(std::make_shared<State>(stream)) {}

Watchdog::~Watchdog() {
  state_->stream = nullptr;
  state_->timer.cancel();
}

Watchdog::Scope::~Scope() {
  if (state_) --state_->scopes;
}

Watchdog::Scope Watchdog::Enter(std::chrono::milliseconds timeout, bool by_progress) {
  State& state = *state_;
  if (state.scopes++ == 0) {
    state.since = Clock::now();
    state.timeout = timeout;
    state.by_progress = by_progress;
    state.expired = false;
    auto deadline = state.since + timeout;
    if (!state.armed || state.timer.expiry() > deadline) state.Arm(deadline);
  }
  return Scope(state_);
}

Watchdog::Scope Watchdog::Limit(std::chrono::milliseconds timeout) { return Enter(timeout, false); }
Watchdog::Scope Watchdog::Stall(std::chrono::milliseconds timeout) { return Enter(timeout, true); }
bool Watchdog::expired() const { return state_->expired; }

}  // namespace caisson::http
