// Tunnels to the real envd, with its own Python on the other side.
#include "sdk/tunnel.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <thread>

#include "http/stream.h"
#include "sdk/test_support.h"

namespace caisson::sdk {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Accepts, and sends back whatever comes.
class Echo {
 public:
  Echo(asio::io_context& io, UniqueFd listener)
      : listener_(io.get_executor(), listener.Release()), tasks_(io.get_executor()) {
    tasks_.Spawn("accept", Accept());
  }
  Task<void> Stop() {
    boost::system::error_code ignored;
    listener_.close(ignored);
    co_await tasks_.Stop();
  }

 private:
  Task<void> Accept() {
    for (;;) {
      auto [ec] = co_await listener_.async_wait(listener_.wait_read, kAwait);
      if (ec) co_return;
      UniqueFd one(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      auto stream = http::MakeSocketStream(tasks_.executor(), std::move(one));
      if (stream) tasks_.Spawn("echo", Serve(std::move(*stream)));
    }
  }
  static Task<void> Serve(std::unique_ptr<http::Stream> stream) {
    std::string buffer(100'000, '\0');
    for (;;) {
      auto n = co_await stream->Read(buffer);
      if (!n || *n == 0) co_return;
      if (!co_await stream->Write(std::string_view(buffer).substr(0, *n))) co_return;
    }
  }

  asio::posix::stream_descriptor listener_;
  TaskGroup tasks_;
};

class TunnelTest : public EnvdFixture {
 protected:
  std::unique_ptr<Tunnel> Make(TunnelLimits limits = {}) {
    return std::make_unique<Tunnel>(
        io_.get_executor(), "itest",
        [this]() -> Task<Result<EnvdClient>> {
          ++reached_;
          if (unreachable_) co_return tl::unexpected(*unreachable_);
          co_return Client();
        },
        inside_, limits);
  }
  // Runs Python inside: `s` is a connection to the port.
  std::string Talk(const std::string& script) {
    Command command;
    command.argv = {"python3", "-c",
                    fmt::format("import socket\n"
                                "s = socket.create_connection(('127.0.0.1', {}))\n{}",
                                inside_, script)};
    command.user = "root";
    command.timeout = 60s;
    auto ran = Await(Client().Run(std::move(command)));
    return ran ? ran->stdout_text + ran->stderr_text : ran.error().message();
  }
  std::vector<int64_t> Relays() {
    std::vector<int64_t> pids;
    auto list = Await(Client().ListProcesses());
    for (const ProcessInfo& one : list.value())
      if (one.tag == fmt::format("caisson-tunnel-{}", inside_)) pids.push_back(one.pid);
    return pids;
  }
  // Waits until it is so; the loop goes on.
  bool Eventually(std::function<bool()> so) {
    for (int i = 0; i < 600; ++i) {
      if (so()) return true;
      Await(SleepFor(50ms));
    }
    return false;
  }

  const uint16_t inside_ = envd::FreePort();
  std::optional<Error> unreachable_;
  int reached_ = 0;
};

constexpr const char* kHello = "s.sendall(b'hello'); print(s.recv(100).decode(), end='')";

TEST_F(TunnelTest, ConnectionsInsideArriveHere) {
  auto tunnel = Make();
  auto listener = Await(tunnel->Open());
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_TRUE(tunnel->is_open());
  Echo echo(io_, std::move(*listener));
  EXPECT_EQ(Talk(kHello), "hello");
  // More than fits into any buffer, and its end.
  EXPECT_EQ(Talk("import threading\n"
                 "data = bytes(range(256)) * 40000\n"
                 "def send():\n"
                 "  s.sendall(data)\n"
                 "  s.shutdown(socket.SHUT_WR)\n"
                 "threading.Thread(target=send).start()\n"
                 "back = s.makefile('rb').read()\n"
                 "print(len(back), back == data, end='')"),
            "10240000 True");
  // One that does not read does not keep the others from it.
  EXPECT_EQ(Talk(fmt::format("import threading\n"
                             "s.setblocking(False)\n"
                             "import time\n"
                             "late = time.monotonic() + 3\n"
                             "while time.monotonic() < late:\n"
                             "  try: s.send(bytes(100000))\n"
                             "  except BlockingIOError: time.sleep(0.05)\n"
                             "t = socket.create_connection(('127.0.0.1', {}))\n"
                             "t.sendall(b'other')\n"
                             "print(t.recv(100).decode(), end='')",
                             inside_)),
            "other");
  Await(tunnel->Close());
  EXPECT_FALSE(tunnel->is_open());
  EXPECT_TRUE(Eventually([&] { return Relays().empty(); }));
  EXPECT_THAT(Talk(kHello), HasSubstr("refused"));
  Await(echo.Stop());
}

TEST_F(TunnelTest, ItEndsWithTheSocket) {
  auto tunnel = Make();
  auto listener = Await(tunnel->Open());
  ASSERT_TRUE(listener) << listener.error().message();
  ASSERT_EQ(Relays().size(), 1u);
  listener->Reset();
  EXPECT_TRUE(Eventually([&] { return !tunnel->is_open(); }));
  EXPECT_TRUE(Eventually([&] { return Relays().empty(); }));
}

TEST_F(TunnelTest, ARelayThatWasLeftBehindIsEnded) {
  auto listener = Await(Make()->Open());
  // Who left it does not come back.
  unreachable_ = Error(Code::kUnimplemented, "it was killed");
  ASSERT_TRUE(listener) << listener.error().message();
  std::vector<int64_t> left = Relays();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(Eventually([&] { return reached_ > 1; }));
  unreachable_.reset();
  auto tunnel = Make();
  auto again = Await(tunnel->Open());
  ASSERT_TRUE(again) << again.error().message();
  Echo echo(io_, std::move(*again));
  EXPECT_EQ(Talk(kHello), "hello");
  std::vector<int64_t> now = Relays();
  ASSERT_EQ(now.size(), 1u);
  EXPECT_NE(now, left);
  Await(tunnel->Close());
  Await(echo.Stop());
}

TEST_F(TunnelTest, ARelayThatDiesIsReplaced) {
  auto tunnel = Make();
  auto listener = Await(tunnel->Open());
  ASSERT_TRUE(listener) << listener.error().message();
  Echo echo(io_, std::move(*listener));
  std::vector<int64_t> first = Relays();
  ASSERT_EQ(first.size(), 1u);
  ASSERT_TRUE(Await(Client().Kill(first[0])));
  EXPECT_TRUE(Eventually([&] { return Relays().size() == 1 && Relays() != first; }));
  EXPECT_TRUE(Eventually([&] { return Talk(kHello) == "hello"; }));
  EXPECT_TRUE(tunnel->is_open());
  // A sandbox that is paused or gone is left alone.
  unreachable_ = Error(Code::kFailedPrecondition, "it is paused");
  for (int64_t pid : Relays()) ASSERT_TRUE(Await(Client().Kill(pid)));
  EXPECT_TRUE(Eventually([&] { return !tunnel->is_open(); }));
  Await(tunnel->Close());
  Await(echo.Stop());
}

TEST_F(TunnelTest, WhyItCannotListenIsSaid) {
  UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(inside_)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  auto tunnel = Make();
  auto listener = Await(tunnel->Open());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(listener.error().message(), HasSubstr("in use"));
  EXPECT_FALSE(tunnel->is_open());
  EXPECT_TRUE(Relays().empty());
}

TEST_F(TunnelTest, WhoIsNotTheRelayIsNotListenedTo) {
  auto tunnel = Make();
  auto listener = Await(tunnel->Open());
  ASSERT_TRUE(listener) << listener.error().message();
  // Whoever is root inside writes into its output.
  Command command = Bash(fmt::format("echo 'not a frame at all' > /proc/{}/fd/1", Relays().at(0)));
  ASSERT_EQ(Await(Client().Run(command))->exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return !tunnel->is_open(); }));
  EXPECT_TRUE(Eventually([&] { return Relays().empty(); }));
}

TEST_F(TunnelTest, MoreConnectionsThanThereMayBeAreClosed) {
  auto tunnel = Make({.connections = 2, .window = 100'000});
  auto listener = Await(tunnel->Open());
  ASSERT_TRUE(listener) << listener.error().message();
  Echo echo(io_, std::move(*listener));
  EXPECT_EQ(Talk(fmt::format("all = [s] + [socket.create_connection(('127.0.0.1', {})) for _ in "
                             "range(5)]\n"
                             "for one in all: one.settimeout(30)\n"
                             "for one in all[:2]: one.sendall(b'x'); print(one.recv(1), end='')\n"
                             "for one in all[2:]: print(one.recv(1), end='')",
                             inside_)),
            "b'x'b'x'b''b''b''b''");
  EXPECT_TRUE(Eventually([&] { return Talk(kHello) == "hello"; }));
  Await(tunnel->Close());
  Await(echo.Stop());
}

}  // namespace
}  // namespace caisson::sdk
