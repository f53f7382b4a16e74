#include "base/async.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace caisson {
namespace {

using namespace std::chrono_literals;

// Runs one coroutine to its end on a fresh loop.
void RunToEnd(Task<void> task, asio::io_context& io) {
  bool done = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
    done = true;
    if (e) std::rethrow_exception(e);
  });
  io.run();
  EXPECT_TRUE(done);
}

Task<Result<int>> SlowAnswer(std::chrono::milliseconds delay) {
  co_await SleepFor(delay);
  co_return 42;
}

Task<void> Deadlines() {
  auto fast = co_await WithDeadline<int>(5s, "answering", SlowAnswer(1ms));
  EXPECT_EQ(fast.value(), 42);
  auto slow = co_await WithDeadline<int>(10ms, "answering", SlowAnswer(60s));
  EXPECT_EQ(slow.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(slow.error().message(), "answering took longer than 10 ms");
}

TEST(WithDeadline, CancelsWhatIsLate) {
  asio::io_context io;
  RunToEnd(Deadlines(), io);
}

Task<void> CountUp(int& counter) {
  co_await SleepFor(1ms);
  ++counter;
}
Task<void> Forever() { co_await SleepFor(1h); }
Task<void> Throws() {
  co_await SleepFor(1ms);
  throw std::runtime_error("expected by the test");
}

Task<void> Groups(asio::io_context& io) {
  TaskGroup group(io.get_executor());
  int counter = 0;
  for (int i = 0; i < 10; ++i) group.Spawn("count", CountUp(counter));
  group.Spawn("throw", Throws());
  EXPECT_TRUE(co_await group.Join(5s));
  EXPECT_EQ(counter, 10);
  group.Spawn("forever", Forever());
  EXPECT_FALSE(co_await group.Join(5ms));
  EXPECT_TRUE(co_await group.Stop());
  EXPECT_EQ(group.size(), 0u);
}

TEST(TaskGroup, StopsAndJoinsItsChildren) {
  asio::io_context io;
  RunToEnd(Groups(io), io);
}

Task<void> WaitFor(Condition& condition, int& woken) {
  if (co_await condition.Wait(5s)) ++woken;
}

Task<void> Conditions(asio::io_context& io) {
  TaskGroup group(io.get_executor());
  Condition condition(io.get_executor());
  int woken = 0;
  for (int i = 0; i < 3; ++i) group.Spawn("wait", WaitFor(condition, woken));
  co_await SleepFor(5ms);
  condition.Notify();
  EXPECT_TRUE(co_await group.Join(5s));
  EXPECT_EQ(woken, 3);
  EXPECT_FALSE(co_await condition.Wait(1ms));
}

TEST(Condition, WakesAllWhoWait) {
  asio::io_context io;
  RunToEnd(Conditions(io), io);
}

Task<void> Blocking(asio::thread_pool& pool) {
  auto result = co_await RunBlocking(pool, []() -> Result<std::string> { return "from the pool"; });
  EXPECT_EQ(result.value(), "from the pool");
  bool thrown = false;
  try {
    co_await RunBlocking(pool, []() -> Status { throw std::runtime_error("x"); });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  EXPECT_TRUE(thrown);
}

TEST(RunBlocking, ReturnsToTheLoop) {
  asio::io_context io;
  asio::thread_pool pool(1);
  RunToEnd(Blocking(pool), io);
}

}  // namespace
}  // namespace caisson
