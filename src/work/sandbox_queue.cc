// Creations that meet a quota: a queue with a deadline, not a storm of attempts.
#include "work/sandboxes.h"

namespace caisson::work {
namespace {

// Room is also made by what this process does not hear of.
constexpr std::chrono::milliseconds kLook{1'000};

}  // namespace

Task<Result<sandbox::ProviderInfo>> Sandboxes::CreateInTurn(sandbox::ProviderOptions options,
                                                            std::chrono::seconds wait) {
  auto full = [](const auto& made) {
    return !made && made.error().code() == Code::kResourceExhausted;
  };
  const std::string owner = options.owner_id;
  const bool may_wait = wait.count() > 0;
  // Who may wait does not overtake those who wait already.
  if (!may_wait || !waiting_.contains(owner)) {
    auto made = co_await provider_.Create(options);
    if (!may_wait || !full(made)) co_return made;
  }
  if (waiting_count_ >= config_.launcher_queue)
    co_return Fail(Code::kResourceExhausted,
                   "{} creations wait for room already, which is the most there may be",
                   waiting_count_);
  struct Turn {
    Sandboxes& all;
    std::string owner;
    uint64_t ticket;
    Turn(Sandboxes& sandboxes, std::string who)
        : all(sandboxes), owner(std::move(who)), ticket(++sandboxes.next_ticket_) {
      all.waiting_[owner].insert(ticket);
      ++all.waiting_count_;
    }
    ~Turn() {
      auto it = all.waiting_.find(owner);
      it->second.erase(ticket);
      if (it->second.empty()) all.waiting_.erase(it);
      --all.waiting_count_;
      all.room_.Notify();
    }
    bool first() const { return *all.waiting_.at(owner).begin() == ticket; }
  } turn(*this, owner);
  auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    auto now = std::chrono::steady_clock::now();
    if (now >= deadline)
      co_return Fail(Code::kResourceExhausted,
                     "quota_wait_over: there was no room for a sandbox within {} s", wait.count());
    co_await room_.Wait(std::min(deadline, now + kLook));
    if (!turn.first()) continue;
    auto made = co_await provider_.Create(options);
    if (!full(made)) co_return made;
  }
}

}  // namespace caisson::work
