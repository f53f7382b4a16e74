// One git operation at a time in one checkout; those who wait get their turn in order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/async.h"

namespace caisson::git {

class Lock : public std::enable_shared_from_this<Lock> {
 public:
  class Guard {
   public:
    Guard() = default;
    explicit Guard(std::shared_ptr<Lock> lock) : lock_(std::move(lock)) {}
    Guard(Guard&&) noexcept = default;
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (lock_) lock_->Release();
    }

   private:
    std::shared_ptr<Lock> lock_;
  };

  // kUnavailable if it is not free within `wait`.
  Task<Result<Guard>> Acquire(std::chrono::milliseconds wait);
  // How many wait.
  size_t depth() const { return waiting_.size(); }

 private:
  struct Waiter {
    Waiter(Lock& where, asio::any_io_executor executor, std::chrono::milliseconds wait);
    ~Waiter();
    Lock& lock;
    asio::steady_timer turn;
    bool handed = false;  // the lock is this one's
  };
  void Release();

  std::deque<Waiter*> waiting_;
  bool taken_ = false;
};

// The locks of all checkouts that somebody works in. One loop thread.
class Locks {
 public:
  std::shared_ptr<Lock> For(const std::string& sandbox_id, const std::string& path);
  // Operations that wait, over all checkouts; a metric.
  size_t depth() const;

 private:
  std::map<std::pair<std::string, std::string>, std::weak_ptr<Lock>> locks_;
};

}  // namespace caisson::git
