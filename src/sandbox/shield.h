// Work that must not stop half-way when the one who asked for it goes away (a client that hangs up
// while its sandbox is being created).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/async.h"

namespace caisson::sandbox {

namespace internal {

template <class T>
struct ShieldState {
  explicit ShieldState(asio::any_io_executor executor) : done(std::move(executor)) {}
  Condition done;
  std::optional<Result<T>> result;
};

// Goes with the coroutine's frame: however that ends, the one who waits hears of it.
template <class T>
class ShieldPromise {
 public:
  explicit ShieldPromise(std::shared_ptr<ShieldState<T>> state) : state_(std::move(state)) {}
  ShieldPromise(ShieldPromise&&) noexcept = default;
  ~ShieldPromise() {
    if (!state_) return;
    if (!state_->result)
      state_->result.emplace(tl::unexpected(Error(Code::kUnavailable, "the server is stopping")));
    state_->done.Notify();
  }
  void Set(Result<T> result) { state_->result.emplace(std::move(result)); }

 private:
  std::shared_ptr<ShieldState<T>> state_;
};

template <class T>
Task<void> RunShielded(ShieldPromise<T> promise, Task<Result<T>> op) {
  promise.Set(co_await std::move(op));
}

}  // namespace internal

// Work under way whose result somebody will want.
template <class T>
using Shielded = std::shared_ptr<internal::ShieldState<T>>;

// Runs `op` as a child of `group`.
template <class T>
Shielded<T> StartShielded(TaskGroup& group, std::string name, Task<Result<T>> op) {
  auto state = std::make_shared<internal::ShieldState<T>>(group.executor());
  group.Spawn(name, internal::RunShielded<T>(internal::ShieldPromise<T>(state), std::move(op)));
  return state;
}

// Waits for its result. A canceled caller stops waiting; the work goes on. If the group is stopped,
// the answer is kUnavailable.
template <class T>
Task<Result<T>> AwaitShielded(Shielded<T> state) {
  // The work has its own deadlines; this bound only makes the wait a finite one.
  while (!state->result) co_await state->done.Wait(std::chrono::hours(1));
  co_return std::move(*state->result);
}

template <class T>
Task<Result<T>> Shield(TaskGroup& group, std::string name, Task<Result<T>> op) {
  co_return co_await AwaitShielded<T>(StartShielded<T>(group, std::move(name), std::move(op)));
}

}  // namespace caisson::sandbox
