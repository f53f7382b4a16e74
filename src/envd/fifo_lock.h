// A lock for coroutines of one loop; those who wait get it in the order they asked.
#pragma once

#include <deque>
#include <utility>

#include "base/async.h"

namespace caisson::envd {

class FifoLock {
 public:
  explicit FifoLock(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  class Guard {
   public:
    Guard() = default;
    explicit Guard(FifoLock* lock) : lock_(lock) {}
    Guard(Guard&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (lock_ != nullptr) lock_->Unlock();
    }
    explicit operator bool() const { return lock_ != nullptr; }

   private:
    FifoLock* lock_ = nullptr;
  };

  // An empty guard if the wait was canceled.
  Task<Guard> Lock() {
    if (!locked_) {
      locked_ = true;
      co_return Guard(this);
    }
    Waiter self(executor_);
    waiting_.push_back(&self);
    co_await self.turn.async_wait(kAwait);
    if (self.handed) co_return Guard(this);
    std::erase(waiting_, &self);
    co_return Guard();
  }

 private:
  struct Waiter {
    explicit Waiter(const asio::any_io_executor& executor)
        : turn(executor, asio::steady_timer::time_point::max()) {}
    asio::steady_timer turn;
    bool handed = false;
  };

  void Unlock() {
    if (waiting_.empty()) {
      locked_ = false;
      return;
    }
    Waiter* next = waiting_.front();
    waiting_.pop_front();
    next->handed = true;
    next->turn.cancel();
  }

  asio::any_io_executor executor_;
  std::deque<Waiter*> waiting_;
  bool locked_ = false;
};

}  // namespace caisson::envd
