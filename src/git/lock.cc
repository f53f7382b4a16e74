#include "git/lock.h"

namespace caisson::git {

Lock::Waiter::Waiter(Lock& where, asio::any_io_executor executor, std::chrono::milliseconds wait)
    : lock(where), turn(std::move(executor), wait) {
  lock.waiting_.push_back(this);
}

// However the wait ends, by a deadline or a cancellation, nobody hands the lock to one who is gone.
Lock::Waiter::~Waiter() {
  std::erase(lock.waiting_, this);
  if (handed) lock.Release();
}

Task<Result<Lock::Guard>> Lock::Acquire(std::chrono::milliseconds wait) {
  auto self = shared_from_this();
  if (!taken_) {
    taken_ = true;
    co_return Guard(self);
  }
  Waiter waiter(*this, co_await asio::this_coro::executor, wait);
  co_await waiter.turn.async_wait(kAwait);
  if (std::exchange(waiter.handed, false)) co_return Guard(self);
  co_return Fail(Code::kUnavailable,
                 "Another git operation is at work in this checkout, and did not end within {} ms.",
                 wait.count());
}

void Lock::Release() {
  if (waiting_.empty()) {
    taken_ = false;
    return;
  }
  Waiter* next = waiting_.front();
  waiting_.pop_front();
  next->handed = true;
  next->turn.cancel();
}

std::shared_ptr<Lock> Locks::For(const std::string& sandbox_id, const std::string& path) {
  std::erase_if(locks_, [](const auto& entry) { return entry.second.expired(); });
  auto& place = locks_[{sandbox_id, path}];
  auto lock = place.lock();
  if (!lock) place = lock = std::make_shared<Lock>();
  return lock;
}

size_t Locks::depth() const {
  size_t depth = 0;
  for (const auto& [where, lock] : locks_)
    if (auto living = lock.lock()) depth += living->depth();
  return depth;
}

}  // namespace caisson::git
