// The end of a tunnel that is here, with a relay that says whatever it likes.
#include "sdk/tunnel_connections.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"

namespace caisson::sdk {
namespace {

using namespace std::chrono_literals;
using Kind = TunnelFrame::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- frames ------------------------------------------------------------------------------------

std::string Encoded(uint32_t connection, Kind kind, std::string_view data = {}) {
  std::string out;
  AppendFrame(out, connection, kind, data);
  return out;
}

std::vector<TunnelFrame> FramesOf(std::string_view bytes, size_t piece = 1 << 20) {
  TunnelFrameReader reader;
  std::vector<TunnelFrame> frames;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.Add(bytes.substr(0, piece));
    for (;;) {
      auto next = reader.Next();
      if (!next) return frames;
      if (!*next) break;
      frames.push_back(std::move(**next));
    }
  }
  return frames;
}

TEST(TunnelFrameTest, ComeInAnyPieces) {
  std::string bytes = Encoded(0, Kind::kReady) + Encoded(1, Kind::kOpen) +
                      Encoded(1, Kind::kData, std::string("a\0b", 3));
  AppendCredit(bytes, 0xfffefdfc, 0x80000001);
  bytes += Encoded(1, Kind::kEnd) + Encoded(1, Kind::kClosed);
  std::vector<TunnelFrame> whole = FramesOf(bytes);
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(whole[2], (TunnelFrame{1, Kind::kData, std::string("a\0b", 3)}));
  EXPECT_EQ(whole[3].connection, 0xfffefdfc);
  EXPECT_EQ(CreditOf(whole[3]), 0x80000001);
  EXPECT_EQ(CreditOf(whole[2]), 0u);
  for (size_t piece : {1, 2, 5, 13}) EXPECT_EQ(FramesOf(bytes, piece), whole);
}

TEST(TunnelFrameTest, WhatCannotBeIsRefusedByItsHead) {
  std::string long_one = Encoded(1, Kind::kData);
  long_one.replace(5, 4, std::string("\0\1\0\1", 4));
  for (const std::string& bytes :
       {long_one, Encoded(1, Kind::kData), Encoded(1, Kind::kOpen, "x"),
        Encoded(1, Kind::kCredit, "123"), Encoded(1, static_cast<Kind>(6)),
        Encoded(1, static_cast<Kind>(255)), std::string(9, '\xff'),
        std::string("Traceback (most recent call last)")}) {
    TunnelFrameReader reader;
    reader.Add(std::string_view(bytes).substr(0, 9));
    auto next = reader.Next();
    ASSERT_FALSE(next) << bytes;
    EXPECT_EQ(next.error().code(), Code::kDataLoss);
  }
}

// ---- connections -------------------------------------------------------------------------------

class TunnelConnectionsTest : public ::testing::Test {
 protected:
  TunnelConnectionsTest() : made_(std::move(PrivateListener::Make().value())) {}
  ~TunnelConnectionsTest() override { testing::Await(io_, connections_.Stop()); }

  Status Take(uint32_t connection, Kind kind, std::string data = "") {
    return connections_.Take({connection, kind, std::move(data)});
  }
  Status Credit(uint32_t connection, size_t bytes) {
    std::string out;
    AppendCredit(out, connection, bytes);
    return connections_.Take(FramesOf(out).at(0));
  }
  void Refused(const Status& status, std::string_view why) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::kDataLoss);
    EXPECT_THAT(status.error().message(), HasSubstr(why));
  }
  UniqueFd Accept() {
    return UniqueFd(accept4(made_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Lets everything happen that can.
  void Settle() {
    io_.restart();
    while (io_.poll() > 0) {
    }
  }
  std::vector<TunnelFrame> Sent() {
    Settle();
    return FramesOf(testing::Await(io_, connections_.NextOutput(16 << 20)));
  }
  std::string ReadHere(const UniqueFd& socket) {
    Settle();
    std::string data(1 << 20, '\0');
    ssize_t n = recv(socket.get(), data.data(), data.size(), MSG_DONTWAIT);
    return n < 0 ? "nothing" : data.substr(0, static_cast<size_t>(n));
  }

  asio::io_context io_{1};
  PrivateListener::Made made_;
  TunnelConnections connections_{
      io_.get_executor(), made_.listener, {.connections = 3, .window = 100'000}};
};

TEST_F(TunnelConnectionsTest, BytesGoBothWays) {
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  ASSERT_TRUE(Take(1, Kind::kData, "hello"));
  EXPECT_EQ(ReadHere(here), "hello");
  ASSERT_EQ(send(here.get(), "world", 5, 0), 5);
  EXPECT_THAT(Sent(), ElementsAre(TunnelFrame{1, Kind::kData, "world"}));
  // Each way ends for itself.
  ASSERT_TRUE(Take(1, Kind::kEnd));
  EXPECT_EQ(ReadHere(here), "");
  EXPECT_EQ(connections_.size(), 1u);
  ASSERT_EQ(send(here.get(), "more", 4, 0), 4);
  here.Reset();
  EXPECT_THAT(Sent(), ElementsAre(TunnelFrame{1, Kind::kData, "more"}, TunnelFrame{1, Kind::kEnd}));
  EXPECT_EQ(connections_.size(), 0u);
}

TEST_F(TunnelConnectionsTest, WhoClosesHereIsGoneInsideToo) {
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  shutdown(here.get(), SHUT_WR);
  EXPECT_THAT(Sent(), ElementsAre(TunnelFrame{1, Kind::kEnd}));
  ASSERT_TRUE(Take(1, Kind::kData, "still"));
  EXPECT_EQ(ReadHere(here), "still");
  here.Reset();
  EXPECT_THAT(Sent(), ElementsAre(TunnelFrame{1, Kind::kClosed}));
  EXPECT_EQ(connections_.size(), 0u);
  // What was under way is nothing special.
  EXPECT_TRUE(Take(1, Kind::kData, "late"));
  EXPECT_TRUE(Take(1, Kind::kEnd));
}

TEST_F(TunnelConnectionsTest, WhoGoesInsideIsGoneHereAfterItsBytes) {
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  ASSERT_TRUE(Take(1, Kind::kData, "last words"));
  ASSERT_TRUE(Take(1, Kind::kClosed));
  EXPECT_EQ(ReadHere(here), "last words");
  EXPECT_EQ(ReadHere(here), "");
  EXPECT_EQ(connections_.size(), 0u);
}

TEST_F(TunnelConnectionsTest, NoMoreIsSentThanThereIsCreditFor) {
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  std::string much(300'000, 'x');
  size_t written = 0, sent = 0;
  auto push = [&] {
    while (written < much.size()) {
      ssize_t n = send(here.get(), much.data(), much.size() - written, MSG_DONTWAIT);
      if (n < 0) break;
      written += static_cast<size_t>(n);
      Settle();
    }
    for (const TunnelFrame& frame : Sent()) sent += frame.data.size();
  };
  push();
  EXPECT_EQ(sent, 100'000u);
  ASSERT_TRUE(Credit(1, 50'000));
  push();
  EXPECT_EQ(sent, 150'000u);
  Refused(Credit(1, 100'001), "credit");
}

TEST_F(TunnelConnectionsTest, WhatIsTakenHereBecomesCredit) {
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Take(1, Kind::kData, std::string(10'000, 'x')));
    EXPECT_EQ(ReadHere(here).size(), 10'000u);
  }
  size_t credit = 0;
  for (const TunnelFrame& frame : Sent()) credit += CreditOf(frame);
  EXPECT_GE(credit, 400'000u);
  EXPECT_LE(credit, 500'000u);
}

TEST_F(TunnelConnectionsTest, ManyBytesThatNobodyTakesAreRefused) {
  int small = 4096;
  setsockopt(made_.socket.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_TRUE(Take(1, Kind::kOpen));
  UniqueFd here = Accept();
  Status taken;
  int frames = 0;
  for (; taken && frames < 1000; ++frames) {
    taken = Take(1, Kind::kData, std::string(10'000, 'x'));
    Settle();
  }
  Refused(taken, "more bytes");
  EXPECT_LT(frames, 60);  // the window, and what the kernel holds
}

TEST_F(TunnelConnectionsTest, WhatARelayNeverSaysIsRefused) {
  ASSERT_TRUE(Take(5, Kind::kOpen));
  Refused(Take(5, Kind::kOpen), "before");
  Refused(Take(4, Kind::kOpen), "before");
  Refused(Take(6, Kind::kData, "x"), "never opened");
  Refused(Take(0, Kind::kReady), "second time");
  ASSERT_TRUE(Take(5, Kind::kEnd));
  Refused(Take(5, Kind::kData, "x"), "more bytes");
}

TEST_F(TunnelConnectionsTest, TooManyAreClosed) {
  for (uint32_t number : {1, 2, 3, 4, 5}) ASSERT_TRUE(Take(number, Kind::kOpen));
  EXPECT_EQ(connections_.size(), 3u);
  EXPECT_THAT(Sent(), ElementsAre(TunnelFrame{4, Kind::kClosed}, TunnelFrame{5, Kind::kClosed}));
  EXPECT_TRUE(Take(5, Kind::kData, "it did not know"));
  ASSERT_TRUE(Take(1, Kind::kClosed));
  Settle();
  ASSERT_TRUE(Take(6, Kind::kOpen));
  EXPECT_EQ(connections_.size(), 3u);
}

TEST_F(TunnelConnectionsTest, ARelayThatDoesNotReadIsNotBorneForEver) {
  Status taken;
  // Nobody accepts, so before long each is refused with a frame of its own.
  for (uint32_t number = 1; taken && number < 1'000'000; ++number) {
    taken = Take(number, Kind::kOpen);
    if (taken) taken = Take(number, Kind::kClosed);
    Settle();
  }
  Refused(taken, "does not take");
}

TEST_F(TunnelConnectionsTest, WhatWaitsForRoomGoesWithItsConnection) {
  // Until the frames for the relay, which does not read them, leave no room for data.
  uint32_t number = 0;
  std::string much(100'000, 'x');
  for (; number < 10; ++number) {
    ASSERT_TRUE(Take(number + 1, Kind::kOpen));
    UniqueFd here = Accept();
    ASSERT_GT(send(here.get(), much.data(), much.size(), MSG_DONTWAIT), 0);
    Settle();
    ASSERT_TRUE(Take(number + 1, Kind::kClosed));
    Settle();
  }
  for (; number < 100; ++number) {
    ASSERT_TRUE(Take(number + 1, Kind::kOpen));
    Accept();
    Settle();
    EXPECT_FALSE(connections_.idle());
    ASSERT_TRUE(Take(number + 1, Kind::kClosed));
    Settle();
    EXPECT_TRUE(connections_.idle());
  }
}

TEST_F(TunnelConnectionsTest, WhenNobodyListensItIsOver) {
  EXPECT_TRUE(made_.listener.IsOpen());
  made_.socket.Reset();
  EXPECT_FALSE(made_.listener.IsOpen());
  Status taken = Take(1, Kind::kOpen);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Code::kCanceled);
}

TEST(PrivateListenerTest, OnlyThisProcessIsConnectedTo) {
  auto made = PrivateListener::Make();
  ASSERT_TRUE(made) << made.error().message();
  ASSERT_TRUE(made->listener.Connect());
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(made->socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  made->socket.Reset();
  EXPECT_FALSE(made->listener.IsOpen());
  EXPECT_EQ(made->listener.Connect().error().sys_errno(), ECONNREFUSED);
  // Another process takes the name.
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t stranger = fork();
  if (stranger == 0) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool fine = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, 5) == 0;
    (void)!write(ready[1], fine ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char fine = 0;
  ASSERT_EQ(read(ready[0], &fine, 1), 1);
  EXPECT_EQ(fine, 'y');
  EXPECT_EQ(made->listener.Connect().error().sys_errno(), ECONNREFUSED);
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

}  // namespace
}  // namespace caisson::sdk
