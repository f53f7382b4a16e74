#include "http/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "http/client.h"
#include "http/test_support.h"

namespace caisson::http {
namespace {

using namespace asio::experimental::awaitable_operators;

struct Pair {
  std::unique_ptr<Stream> ours;
  UniqueFd theirs;
};

Pair MakePair(asio::any_io_executor executor) {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  Pair pair;
  pair.ours = std::move(MakeSocketStream(executor, UniqueFd(fds[0])).value());
  pair.theirs = UniqueFd(fds[1]);
  return pair;
}

Task<void> CheckPump(size_t size) {
  auto executor = co_await asio::this_coro::executor;
  Pair left = MakePair(executor), right = MakePair(executor);
  std::string sent(size, '\0');
  for (size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 7 / 3);
  std::thread writer([&] {
    for (size_t at = 0; at < size;) {
      ssize_t n = send(left.theirs.get(), sent.data() + at, size - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
    shutdown(left.theirs.get(), SHUT_WR);
  });
  std::string received;
  std::thread reader([&] {
    char buffer[64 << 10];
    for (ssize_t n; (n = recv(right.theirs.get(), buffer, sizeof(buffer), 0)) > 0;)
      received.append(buffer, static_cast<size_t>(n));
  });
  Status moved = co_await Pump(*left.ours, *right.ours, 30s);
  writer.join();
  reader.join();
  EXPECT_TRUE(moved);
  EXPECT_TRUE(received == sent) << received.size() << " of " << size;
}

TEST(Pump, CopiesEverything) {
  TestLoop loop;
  for (size_t size : {0u, 1u, 5000u, 16384u, 16385u, 20'000'000u}) loop.Run(CheckPump(size));
}

Task<void> SendSlowly(int fd) {
  for (int i = 0; i < 8; ++i) {
    co_await SleepFor(300ms);
    EXPECT_EQ(send(fd, "x", 1, 0), 1);
  }
}

Task<void> CheckIdle() {
  auto executor = co_await asio::this_coro::executor;
  Pair left = MakePair(executor), right = MakePair(executor);
  auto start = std::chrono::steady_clock::now();
  // Only one direction moves; the silent one must live as long.
  auto [there, back, sent] =
      co_await (Pump(*left.ours, *right.ours, 1500ms) && Pump(*right.ours, *left.ours, 1500ms) &&
                    [](int fd) -> Task<int> {
        co_await SendSlowly(fd);
        co_return 0;
      }(left.theirs.get()));
  auto lived = std::chrono::steady_clock::now() - start;
  EXPECT_GE(lived, 3700ms);  // a byte every 300 ms for 2.4 s, and then 1.5 s of silence
  EXPECT_LT(lived, 30s);
  EXPECT_EQ(there.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(back);
  EXPECT_EQ(sent, 0);
}

TEST(Pump, GivesUpOnlyWhenBothDirectionsAreSilent) {
  TestLoop loop;
  loop.Run(CheckIdle());
}

Task<void> CheckClosed() {
  auto executor = co_await asio::this_coro::executor;
  Pair left = MakePair(executor), right = MakePair(executor);
  right.theirs.Reset();
  EXPECT_EQ(send(left.theirs.get(), "x", 1, 0), 1);
  auto moved = co_await Pump(*left.ours, *right.ours, 30s);
  EXPECT_EQ(moved.error().code(), Code::kUnavailable);
}

TEST(Pump, ReportsAClosedReceiver) {
  TestLoop loop;
  loop.Run(CheckClosed());
}

Task<Result<size_t>> ReadOne(Stream& stream) {
  char byte;
  co_return co_await stream.Read({&byte, 1});
}

Task<int> CloseSoon(Stream& stream) {
  co_await SleepFor(10ms);
  stream.Close();
  co_return 0;
}

Task<void> CheckClose() {
  Pair pair = MakePair(co_await asio::this_coro::executor);
  auto [read, ignored] = co_await (ReadOne(*pair.ours) && CloseSoon(*pair.ours));
  EXPECT_EQ(read.error().code(), Code::kCanceled);
  EXPECT_EQ(ignored, 0);
  EXPECT_FALSE(co_await ReadOne(*pair.ours));
  EXPECT_FALSE(co_await pair.ours->Write("x"));
  EXPECT_FALSE(co_await pair.ours->WaitReadable());
}

TEST(Stream, CloseEndsWhatIsPending) {
  TestLoop loop;
  loop.Run(CheckClose());
}

Task<void> CheckTry() {
  Pair pair = MakePair(co_await asio::this_coro::executor);
  char buffer[10];
  auto nothing = pair.ours->TryRead(buffer);
  EXPECT_TRUE(WouldBlock(nothing.error()));
  EXPECT_EQ(pair.ours->PeerAddress(), "unix");
  EXPECT_EQ(send(pair.theirs.get(), "abc", 3, 0), 3);
  EXPECT_TRUE(co_await pair.ours->WaitReadable());
  EXPECT_EQ(pair.ours->TryRead(buffer).value(), 3u);
  EXPECT_TRUE(co_await pair.ours->Write("a", "", "b"));
  EXPECT_EQ(recv(pair.theirs.get(), buffer, sizeof(buffer), 0), 2);
  pair.theirs.Reset();
  EXPECT_EQ((co_await pair.ours->Read(buffer)).value(), 0u);
}

TEST(Stream, ReadsWithoutWaiting) {
  TestLoop loop;
  loop.Run(CheckTry());
}

}  // namespace
}  // namespace caisson::http
