#include "http/server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <numeric>

#include "http/test_support.h"

namespace caisson::http {
namespace {

TEST(Server, KeepsConnectionsAlive) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send("POST /a?b=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.body, "POST /a?b=1 hello");
    EXPECT_EQ(answer.Header("Connection"), "");
  }
  EXPECT_EQ(server.connections(), 1u);
}

TEST(Server, IsGoneFromItsPortAtOnce) {
  asio::io_context io;
  auto server = std::make_unique<Server>(io.get_executor(), ServerOptions(), EchoHandler);
  ASSERT_TRUE(server->Listen("127.0.0.1:0"));
  std::string address = fmt::format("127.0.0.1:{}", server->port());
  io.poll();  // it waits for connections now
  server.reset();
  Server next(io.get_executor(), ServerOptions(), EchoHandler);
  Status listening = next.Listen(address);
  EXPECT_TRUE(listening) << listening.error().message();
}

TEST(Server, AtAUnixSocketOnlyThisProcessIsServed) {
  asio::io_context io;
  Server server(io.get_executor(), ServerOptions(), EchoHandler);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  socklen_t size = sizeof(sa_family_t);  // the kernel finds a name
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 5), 0);
  size = sizeof(address);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_TRUE(server.Adopt(std::move(listener)));
  auto connected = [&] {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0
               ? std::move(socket)
               : UniqueFd();
  };
  pid_t stranger = fork();
  if (stranger == 0) {
    UniqueFd socket = connected();
    char byte = 0;
    _exit(socket && read(socket.get(), &byte, 1) == 0 ? 0 : 1);  // closed
  }
  int status = -1;
  while (waitpid(stranger, &status, WNOHANG) == 0) io.poll();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(server.connections(), 0u);
  UniqueFd own = connected();
  ASSERT_TRUE(own);
  while (server.connections() == 0) io.poll();
  EXPECT_EQ(server.connections(), 1u);
}

TEST(Server, ServesPipelinedRequestsInOrder) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += fmt::format("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", i);
    all += "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  }
  client.Send(all);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.ReadAnswer().body, fmt::format("GET /{} ", i));
    EXPECT_EQ(client.ReadAnswer().body, "POST /c abc");
  }
}

TEST(Server, SurvivesAnySplitOfTheRequest) {
  TestServer server(EchoHandler);
  const std::string request =
      "POST /s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;ext=1\r\nhello\r\nc\r\n, world! bye\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t cut = 1; cut < request.size(); cut += 3) {
    RawClient client(server.port());
    client.Send(std::string_view(request).substr(0, cut));
    std::this_thread::sleep_for(1ms);
    client.Send(std::string_view(request).substr(cut));
    EXPECT_EQ(client.ReadAnswer().body, "POST /s hello, world! bye") << "cut at " << cut;
  }
}

TEST(Server, TakesAnEmptyChunkedBodyByteByByte) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  client.Send("POST /0 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (char c : std::string_view("0\r\n\r\n")) {
    std::this_thread::sleep_for(2ms);
    client.Send({&c, 1});
  }
  EXPECT_EQ(client.ReadAnswer().body, "POST /0 ");
}

TEST(Server, SpeaksHttp10) {
  TestServer server(EchoHandler);
  RawClient closing(server.port());
  closing.Send("GET /old HTTP/1.0\r\n\r\n");
  auto answer = closing.ReadAnswer();
  EXPECT_EQ(answer.body, "GET /old ");
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(closing.ReadToEnd(), "");

  RawClient keeping(server.port());
  for (int i = 0; i < 2; ++i) {
    keeping.Send("GET /k HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(keeping.ReadAnswer().Header("Connection"), "keep-alive");
  }
}

TEST(Server, ClosesWhenAsked) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().Header("Connection"), "close");
  EXPECT_EQ(client.ReadToEnd(), "");
}

Task<void> ByStatus(Exchange& exchange) {
  unsigned status = static_cast<unsigned>(std::stoul(exchange.request().target.substr(1)));
  (void)co_await exchange.Send(Response::Text(status, "body"));
}

TEST(Server, SendsNoBodyWhereNoneMayBe) {
  TestServer server(ByStatus);
  RawClient client(server.port());
  client.Send("HEAD /200 HTTP/1.1\r\nHost: x\r\n\r\n");
  auto head = client.ReadAnswer(true);
  EXPECT_EQ(head.Header("Content-Length"), "4");
  for (unsigned status : {204u, 304u}) {
    client.Send(fmt::format("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", status));
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.Header("Content-Length"), "");
    EXPECT_EQ(answer.Header("Transfer-Encoding"), "");
  }
  client.Send("GET /201 HTTP/1.1\r\nHost: x\r\n\r\n");
  auto answer = client.ReadAnswer();  // would fail if a stray body had been sent before
  EXPECT_EQ(answer.status, 201u);
  EXPECT_EQ(answer.body, "body");
}

TEST(Server, EmptyAnswersHaveALength) {
  Handler empty = [](Exchange& exchange) -> Task<void> {
    (void)co_await exchange.Send(Response::Empty(202));
  };
  TestServer server(empty);
  RawClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().Header("Content-Length"), "0");
}

TEST(Server, AnswersExpectContinueOnTheFirstRead) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  client.Send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().status, 100u);
  client.Send("ok");
  EXPECT_EQ(client.ReadAnswer().body, "POST /e ok");
  // Not read, not asked for: the answer comes at once and the connection closes.
  TestServer refusing(ByStatus);
  RawClient refused(refusing.port());
  refused.Send(
      "POST /403 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  auto answer = refused.ReadAnswer();
  EXPECT_EQ(answer.status, 403u);
  EXPECT_EQ(answer.Header("Connection"), "close");
}

TEST(Server, DrainsSmallUnreadBodies) {
  TestServer server(ByStatus);
  RawClient client(server.port());
  client.Send("POST /200 HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n" +
              std::string(30000, 'x'));
  EXPECT_EQ(client.ReadAnswer().status, 200u);
  client.Send("GET /201 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().status, 201u);
}

TEST(Server, ARefusedUploadStillSeesItsAnswer) {
  TestServer server(ByStatus);
  RawClient client(server.port());
  client.Send("POST /403 HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n");
  client.Send(std::string(20'000'000, 'x'));
  auto answer = client.ReadAnswer();
  EXPECT_EQ(answer.status, 403u);
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST(Server, GivesEveryRequestAnId) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: my-id.1\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().Header("X-Request-Id"), "my-id.1");
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: <script>\r\n\r\n");
  std::string first = client.ReadAnswer().Header("X-Request-Id");
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string second = client.ReadAnswer().Header("X-Request-Id");
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(second.size(), 16u);
  EXPECT_NE(first, second);
}

Task<void> Misbehave(Exchange& exchange) {
  if (exchange.request().target == "/throw") throw std::runtime_error("expected by the test");
  if (exchange.request().target == "/large") {
    auto body = co_await exchange.ReadAll(10);
    EXPECT_EQ(body.error().code(), Code::kOutOfRange);
    co_return;
  }
  if (exchange.request().target == "/half") {
    EXPECT_TRUE(co_await exchange.StartStream({}, 10));
    EXPECT_TRUE(co_await exchange.Write("half"));
    co_return;
  }
  if (exchange.request().target == "/more") {
    EXPECT_TRUE(co_await exchange.StartStream({}, 3));
    EXPECT_EQ((co_await exchange.Write("four")).error().code(), Code::kInternal);
    co_return;
  }
  if (exchange.request().target == "/abort") {
    EXPECT_TRUE(co_await exchange.StartStream({}, std::nullopt));
    EXPECT_TRUE(co_await exchange.Write("some"));
    exchange.Abort();
  }
  if (exchange.request().target == "/twice") {
    EXPECT_TRUE(co_await exchange.Send(Response::Text(200, "one")));
    EXPECT_EQ((co_await exchange.Send(Response::Text(200, "two"))).error().code(),
              Code::kFailedPrecondition);
  }
}

TEST(Server, AnswersForHandlersThatDoNot) {
  TestServer server(Misbehave);
  RawClient client(server.port());
  for (const char* target : {"/throw", "/nothing"}) {
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target));
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, 500u);
    EXPECT_NE(answer.body.find(answer.Header("X-Request-Id")), std::string::npos);
    EXPECT_EQ(answer.body.find("expected by the test"), std::string::npos);
  }
  client.Send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world");
  EXPECT_EQ(client.ReadAnswer().status, 413u);
  client.Send("GET /twice HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().body, "one");
}

TEST(Server, CutsAnswersThatCannotBeCompleted) {
  TestServer server(Misbehave);
  for (const char* target : {"/half", "/more", "/abort"}) {
    RawClient client(server.port());
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target));
    EXPECT_TRUE(client.ReadToEnd().ends_with("RST")) << target;
  }
}

Task<void> CountDown(Exchange& exchange) {
  ResponseHead head;
  head.headers.Add("Content-Type", "text/plain");
  EXPECT_TRUE(co_await exchange.StartStream(head, std::nullopt, "three "));
  EXPECT_TRUE(co_await exchange.Write("two "));
  EXPECT_TRUE(co_await exchange.Write(""));
  co_await SleepFor(20ms);
  EXPECT_TRUE(co_await exchange.Write("one "));
  EXPECT_TRUE(co_await exchange.FinishStream("zero"));
}

TEST(Server, StreamsAtOnce) {
  TestServer server(CountDown);
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    auto answer = client.ReadAnswer();
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.body, "three two one zero");
  }
  RawClient old(server.port());
  old.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto answer = old.ReadAnswer();
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(answer.Header("Transfer-Encoding"), "");
  EXPECT_EQ(answer.body, "three two one zero");
}

// Large bodies both ways at once: what is read is written, nothing is kept.
Task<void> Mirror(Exchange& exchange) {
  EXPECT_TRUE(co_await exchange.StartStream({}, exchange.ContentLength()));
  std::string buffer(10'000, '\0');
  for (;;) {
    auto n = co_await exchange.Read(buffer);
    if (!n || *n == 0) break;
    if (!co_await exchange.Write(std::string_view(buffer).substr(0, *n))) co_return;
  }
  EXPECT_TRUE(co_await exchange.FinishStream());
}

TEST(Server, CarriesLargeBodiesBothWays) {
  TestServer server(Mirror);
  std::string sent(8 << 20, '\0');
  std::iota(sent.begin(), sent.end(), 0);
  for (bool chunked : {false, true}) {
    RawClient client(server.port());
    std::string head =
        chunked ? "Transfer-Encoding: chunked" : fmt::format("Content-Length: {}", sent.size());
    std::thread sender([&] {
      client.Send("POST / HTTP/1.1\r\nHost: x\r\n" + head + "\r\n\r\n");
      if (!chunked) return client.Send(sent);
      for (size_t at = 0; at < sent.size();) {
        size_t n = std::min(sent.size() - at, 1 + at % 70'000);
        client.Send(fmt::format("{:X}\r\n", n));
        client.Send(std::string_view(sent).substr(at, n));
        client.Send("\r\n");
        at += n;
      }
      client.Send("0\r\n\r\n");
    });
    auto answer = client.ReadAnswer();
    sender.join();
    EXPECT_TRUE(answer.body == sent) << answer.body.size();
  }
}

Task<void> SendMemory(Exchange& exchange) {
  UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  std::string data(3'000'000, 'f');
  data += "end";
  EXPECT_EQ(write(file.get(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
  bool known = exchange.request().target == "/known";
  std::optional<uint64_t> length;
  if (known) length = data.size() - 1;
  EXPECT_TRUE(co_await exchange.StartStream({}, length));
  EXPECT_TRUE(co_await exchange.SendFile(file.get(), 1, data.size() - 1));
  if (exchange.request().target == "/short") {
    EXPECT_EQ((co_await exchange.SendFile(file.get(), data.size() - 1, 2)).error().code(),
              Code::kDataLoss);
    co_return;
  }
  EXPECT_TRUE(co_await exchange.FinishStream());
}

TEST(Server, SendsFiles) {
  TestServer server(SendMemory);
  RawClient client(server.port());
  for (const char* target : {"/known", "/chunked"}) {
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target));
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.body.size(), 3'000'002u);
    EXPECT_TRUE(answer.body.ends_with("fend"));
  }
  client.Send("HEAD /known HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer(true).Header("Content-Length"), "3000002");
  client.Send("GET /short HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_FALSE(client.ReadAnswer().complete);
}

struct GoneCounter {
  std::atomic<int> begun = 0;
  std::atomic<int> gone = 0;
  std::atomic<int> finished = 0;
};

// Waits until it has come so far, for at most half a minute.
bool Reaches(const std::atomic<int>& counter, int value) {
  for (int i = 0; i < 3000 && counter < value; ++i) std::this_thread::sleep_for(10ms);
  return counter >= value;
}

Task<void> Forever(Exchange& exchange) {
  for (;;) {
    co_await SleepFor(5ms);
    (void)exchange;
  }
}

Task<void> StreamUntilGone(Exchange& exchange, GoneCounter& counter) {
  using namespace asio::experimental::awaitable_operators;
  EXPECT_TRUE(co_await exchange.StartStream({}, std::nullopt));
  auto winner = co_await (Forever(exchange) || exchange.ClientGone());
  EXPECT_EQ(winner.index(), 1u);
  ++counter.gone;
}

TEST(Server, NoticesThatTheClientIsGone) {
  GoneCounter counter;
  Handler handler = [&counter](Exchange& exchange) { return StreamUntilGone(exchange, counter); };
  TestServer server(handler);
  {
    RawClient leaves(server.port()), resets(server.port()), pipelines(server.port());
    for (RawClient* client : {&leaves, &resets, &pipelines}) {
      client->Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_NE(client->ReadSome(), "");
    }
    resets.Reset();
    pipelines.Send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(Reaches(counter.gone, 1));
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(counter.gone, 1);  // a pipelined request is no goodbye
  }
  EXPECT_TRUE(server.WaitForConnections(0));
  EXPECT_EQ(counter.gone, 3);
}

Task<void> UpgradeToEcho(Exchange& exchange) {
  std::string buffered;
  auto stream = exchange.Upgrade(buffered);
  EXPECT_TRUE(stream);
  EXPECT_TRUE(co_await (*stream)->Write("HTTP/1.1 101 Switching Protocols\r\n\r\n", buffered));
  char buffer[100];
  for (;;) {
    auto n = co_await (*stream)->Read(buffer);
    if (!n || *n == 0) co_return;
    EXPECT_TRUE(co_await (*stream)->Write({buffer, *n}));
  }
}

TEST(Server, HandsConnectionsOver) {
  TestServer server(UpgradeToEcho);
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
  EXPECT_EQ(client.ReadAnswer().status, 101u);
  EXPECT_EQ(client.ReadSome(), "early");
  client.Send("late");
  EXPECT_EQ(client.ReadSome(), "late");
  client.CloseWrite();
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST(Server, RewritesAbsoluteTargets) {
  Handler handler = [](Exchange& exchange) -> Task<void> {
    (void)co_await exchange.Send(Response::Text(
        200,
        exchange.request().target + " " + std::string(exchange.request().headers.Value("Host"))));
  };
  TestServer server(handler);
  RawClient client(server.port());
  client.Send("GET http://real.example:80/p?q HTTP/1.1\r\nHost: other\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().body, "/p?q real.example:80");
}

Task<void> SleepOrDie(Exchange& exchange, GoneCounter& counter) {
  ++counter.begun;
  co_await SleepFor(exchange.request().target == "/slow" ? 60'000ms : 150ms);
  (void)co_await exchange.Send(Response::Text(200, "finished"));
  ++counter.finished;
}

TEST(Server, StopsGracefully) {
  GoneCounter counter;
  Handler handler = [&counter](Exchange& exchange) { return SleepOrDie(exchange, counter); };
  TestServer server(handler);
  RawClient idle(server.port()), quick(server.port()), slow(server.port());
  quick.Send("GET /quick HTTP/1.1\r\nHost: x\r\n\r\n");
  slow.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(server.WaitForConnections(3));
  ASSERT_TRUE(Reaches(counter.begun, 2));
  auto start = std::chrono::steady_clock::now();
  server.Stop(2s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);  // of a minute
  EXPECT_EQ(idle.ReadToEnd(), "");
  auto answer = quick.ReadAnswer();
  EXPECT_EQ(answer.body, "finished");
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(slow.ReadAnswer().status, 0u);
  EXPECT_EQ(counter.finished, 1);
  EXPECT_EQ(server.connections(), 0u);
}

TEST(Server, MayBeDestroyedWithoutStop) {
  GoneCounter counter;
  TestLoop loop;
  Handler handler = [&counter](Exchange& exchange) { return SleepOrDie(exchange, counter); };
  std::unique_ptr<Server> server;
  uint16_t port = loop.Call([&] {
    server = std::make_unique<Server>(loop.executor(), ServerOptions{}, handler);
    EXPECT_TRUE(server->Listen("127.0.0.1:0"));
    return server->port();
  });
  RawClient idle(port), busy(port);
  busy.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Reaches(counter.begun, 1));
  loop.Call([&] {
    server.reset();
    return 0;
  });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(busy.ReadToEnd(), "");
  EXPECT_EQ(counter.finished, 0);
}

TEST(Server, SaysWhyItCannotListen) {
  TestServer server(EchoHandler);
  server.loop().Call([&] {
    auto taken = server.server().Listen(server.address());
    EXPECT_NE(taken.error().message().find("Address already in use"), std::string::npos);
    EXPECT_EQ(server.server().Listen("nonsense").error().code(), Code::kInvalidArgument);
    EXPECT_EQ(server.server().Listen("1.2.3.4.5:80").error().code(), Code::kInvalidArgument);
    return 0;
  });
}

}  // namespace
}  // namespace caisson::http
