#include "sandbox/turns.h"

namespace caisson::sandbox {

Turns::Turns(asio::any_io_executor executor, std::chrono::milliseconds patience)
    : patience_(patience), changed_(std::move(executor)) {}

Turns::Turn::~Turn() {
  if (!state_) return;
  turns_.states_.erase(id_);
  turns_.changed_.Notify();
}

bool Turns::Turn::killed() const { return state_->killed; }
std::optional<engine::ExitReason> Turns::Turn::exited() const { return state_->exited; }

Task<Result<Turns::Turn>> Turns::Take(std::string id, std::string doing) {
  if (auto it = states_.find(id); it != states_.end() && it->second->waiting >= kMaxWaiting)
    co_return Fail(Code::kResourceExhausted,
                   "too many requests wait for sandbox '{}', which {}; try again later", id,
                   it->second->doing);
  if (!co_await Wait(id))
    co_return Fail(Code::kAborted, "sandbox '{}' {}; try again later", id, Doing(id));
  auto state = std::make_shared<State>();
  state->doing = std::move(doing);
  states_.emplace(id, state);
  co_return Turn(*this, std::move(id), std::move(state));
}

Task<void> Turns::AwaitFree(std::string id) { (void)co_await Wait(std::move(id)); }

Task<bool> Turns::Wait(std::string id) {
  auto deadline = std::chrono::steady_clock::now() + patience_;
  for (auto it = states_.find(id); it != states_.end(); it = states_.find(id)) {
    // However the wait ends (cancellation included), it is counted out.
    struct Waiting {
      std::shared_ptr<State> state;
      ~Waiting() { --state->waiting; }
    };
    ++it->second->waiting;
    Waiting waiting{it->second};
    if (!co_await changed_.Wait(deadline)) co_return !states_.contains(id);
  }
  co_return true;
}

std::string Turns::Doing(const std::string& id) const {
  auto it = states_.find(id);
  return it == states_.end() ? std::string() : it->second->doing;
}

void Turns::MarkKilled(const std::string& id) {
  if (auto it = states_.find(id); it != states_.end()) it->second->killed = true;
}

bool Turns::MarkExited(const std::string& id, engine::ExitReason reason) {
  auto it = states_.find(id);
  if (it == states_.end()) return false;
  it->second->exited = reason;
  return true;
}

}  // namespace caisson::sandbox
