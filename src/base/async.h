// The coroutine conventions: one loop thread owns its state, children live in a TaskGroup, every
// wait can have a deadline. asio's cancellation is safe only from the loop's own thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace caisson {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

// Completion token for asio operations: auto [ec, n] = co_await op(..., kAwait);
inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Turns an asio error into ours.
Error FromEc(const boost::system::error_code& ec, std::string_view doing);

// Owns child coroutines on one single-threaded executor. A child that throws is logged. The owner
// calls Stop() (cancels and waits for all) before it is destroyed.
class TaskGroup {
 public:
  explicit TaskGroup(asio::any_io_executor executor);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts `task`. `name` is for the log. After Stop() has begun, new tasks are dropped.
  void Spawn(std::string_view name, Task<void> task);
  // Cancels every child (asio terminal cancellation).
  void Cancel();
  // Waits until no child is left; returns false if `deadline` passed first.
  Task<bool> Join(std::chrono::milliseconds deadline);
  Task<bool> Stop(std::chrono::milliseconds deadline = std::chrono::seconds(10));

  size_t size() const { return children_.size(); }
  asio::any_io_executor executor() const { return executor_; }

 private:
  asio::any_io_executor executor_;
  asio::steady_timer idle_;
  std::list<asio::cancellation_signal> children_;
  bool stopping_ = false;
  // Completion handlers may outlive the group if it is destroyed early; they look here first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// An event that coroutines of one loop can wait for. Notify() wakes all who wait now.
class Condition {
 public:
  explicit Condition(asio::any_io_executor executor)
      : timer_(std::move(executor), asio::steady_timer::time_point::max()) {}
  void Notify() { timer_.cancel(); }
  // True if notified, false if `deadline` passed.
  Task<bool> Wait(std::chrono::steady_clock::time_point deadline);
  Task<bool> Wait(std::chrono::milliseconds timeout) {
    return Wait(std::chrono::steady_clock::now() + timeout);
  }

 private:
  asio::steady_timer timer_;
};

Task<void> SleepFor(std::chrono::milliseconds duration);

// Runs `op` and cancels it when `timeout` passes; then the answer is kDeadlineExceeded with
// "<doing> took longer than <timeout> ms". `op` must react to cancellation (all asio operations
// do).
Task<Status> WithDeadline(std::chrono::milliseconds timeout, std::string doing, Task<Status> op);

namespace internal {
template <class T>
Task<Status> StoreResult(Task<Result<T>> op, std::optional<T>& out) {
  auto result = co_await std::move(op);
  if (!result) co_return tl::unexpected(std::move(result).error());
  out.emplace(std::move(*result));
  co_return Status();
}
}  // namespace internal

template <class T>
Task<Result<T>> WithDeadline(std::chrono::milliseconds timeout, std::string doing,
                             Task<Result<T>> op) {
  std::optional<T> value;
  CO_TRY(co_await WithDeadline(timeout, std::move(doing),
                               internal::StoreResult<T>(std::move(op), value)));
  co_return std::move(*value);
}

// Runs blocking `fn` on `pool` and resumes on the caller's executor. An exception is rethrown here.
template <class Fn>
Task<std::invoke_result_t<Fn>> RunBlocking(asio::thread_pool& pool, Fn fn) {
  using R = std::invoke_result_t<Fn>;
  static_assert(!std::is_void_v<R>, "return a Status");
  auto init = [&pool](auto handler, Fn job) {
    auto work = asio::make_work_guard(asio::get_associated_executor(handler));
    asio::post(pool, [job = std::move(job), handler = std::move(handler),
                      work = std::move(work)]() mutable {
      std::exception_ptr thrown;
      auto result = std::make_unique<std::optional<R>>();
      try {
        result->emplace(job());
      } catch (...) {
        thrown = std::current_exception();
      }
      auto executor = work.get_executor();
      asio::post(executor,
                 [thrown, result = std::move(result), handler = std::move(handler)]() mutable {
                   handler(thrown, std::move(result));
                 });
    });
  };
  auto result =
      co_await asio::async_initiate<const asio::use_awaitable_t<>,
                                    void(std::exception_ptr, std::unique_ptr<std::optional<R>>)>(
          std::move(init), asio::use_awaitable, std::move(fn));
  co_return std::move(**result);
}

}  // namespace caisson
