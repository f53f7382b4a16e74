#include "base/async.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"

namespace caisson {

Error FromEc(const boost::system::error_code& ec, std::string_view doing) {
  if (ec == asio::error::operation_aborted)
    return Error(Code::kCanceled, fmt::format("{}: canceled", doing));
  if (ec == asio::error::eof)
    return Error(Code::kUnavailable,
                 fmt::format("{}: the other side closed the connection", doing));
  if (ec.category() == boost::system::system_category())
    return ErrnoError(std::string(doing), ec.value());
  return Error(Code::kUnavailable, fmt::format("{}: {}", doing, ec.message()));
}

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(executor), idle_(executor, asio::steady_timer::time_point::max()) {}

TaskGroup::~TaskGroup() { *alive_ = false; }

void TaskGroup::Spawn(std::string_view name, Task<void> task) {
  if (stopping_) return;
  auto it = children_.emplace(children_.end());
  auto done = [this, alive = alive_, it, name = std::string(name)](std::exception_ptr thrown) {
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const boost::system::system_error& e) {
        // asio ends a canceled coroutine at its next wait this way; that is no failure.
        if (e.code() != asio::error::operation_aborted)
          LogError("a background task failed", {{"task", name}, {"error", e.what()}});
      } catch (const std::exception& e) {
        LogError("a background task failed", {{"task", name}, {"error", e.what()}});
      } catch (...) {
        LogError("a background task failed", {{"task", name}});
      }
    }
    if (!*alive) return;
    children_.erase(it);
    if (children_.empty()) idle_.cancel();
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(it->slot(), std::move(done)));
}

void TaskGroup::Cancel() {
  // emit() may finish a child at once and erase it, so step before emitting.
  for (auto it = children_.begin(); it != children_.end();) {
    auto current = it++;
    current->emit(asio::cancellation_type::terminal);
  }
}

Task<bool> TaskGroup::Join(std::chrono::milliseconds deadline) {
  auto until = std::chrono::steady_clock::now() + deadline;
  while (!children_.empty()) {
    if (std::chrono::steady_clock::now() >= until) co_return false;
    idle_.expires_at(until);
    co_await idle_.async_wait(kAwait);
  }
  co_return true;
}

Task<bool> TaskGroup::Stop(std::chrono::milliseconds deadline) {
  stopping_ = true;
  Cancel();
  co_return co_await Join(deadline);
}

Task<bool> Condition::Wait(std::chrono::steady_clock::time_point deadline) {
  // Only move the shared expiry outwards: setting it would cancel, that is wake, the others.
  asio::steady_timer own(timer_.get_executor(), deadline);
  using namespace asio::experimental::awaitable_operators;
  auto winner = co_await (timer_.async_wait(kAwait) || own.async_wait(kAwait));
  co_return winner.index() == 0;
}

Task<void> SleepFor(std::chrono::milliseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  co_await timer.async_wait(kAwait);
}

Task<Status> WithDeadline(std::chrono::milliseconds timeout, std::string doing, Task<Status> op) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer timer(co_await asio::this_coro::executor, timeout);
  auto winner = co_await (std::move(op) || timer.async_wait(kAwait));
  if (winner.index() == 0) co_return std::get<0>(std::move(winner));
  co_return Fail(Code::kDeadlineExceeded, "{} took longer than {} ms", doing, timeout.count());
}

}  // namespace caisson
