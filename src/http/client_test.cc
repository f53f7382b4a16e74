#include "http/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "http/test_support.h"

namespace caisson::http {
namespace {

RequestHead Get(std::string target) {
  RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  return head;
}

RequestHead Post(std::string target) {
  RequestHead head = Get(std::move(target));
  head.method = "POST";
  return head;
}

Task<void> FetchMany(std::string address) {
  auto connection = co_await ClientConnection::Connect(address, 30s);
  EXPECT_TRUE(connection);
  EXPECT_FALSE((*connection)->Reusable());
  for (int i = 0; i < 3; ++i) {
    auto answer = co_await (*connection)->Fetch(Post("/f"), fmt::format("body {}", i), 1000);
    EXPECT_EQ(answer.value().status, 200u);
    EXPECT_EQ(answer->body, fmt::format("POST /f body {}", i));
    EXPECT_TRUE((*connection)->Reusable());
  }
  EXPECT_TRUE((co_await (*connection)->Fetch(Get("/x"), "", 100)).value().body == "GET /x ");
  auto large = co_await (*connection)->Fetch(Post("/f"), std::string(200'000, 'x'), 1000);
  EXPECT_EQ(large.error().code(), Code::kOutOfRange);
  EXPECT_FALSE((*connection)->Reusable());
  EXPECT_EQ((co_await (*connection)->SendHead(Get("/"), 0)).error().code(),
            Code::kFailedPrecondition);
}

TEST(Client, ReusesAConnection) {
  TestServer server(EchoHandler);
  server.loop().Run(FetchMany(server.address()));
}

Task<void> StreamBothWays(std::string address) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  EXPECT_TRUE(co_await connection->SendHead(Post("/s"), std::nullopt, "one "));
  EXPECT_TRUE(co_await connection->WriteBody("two "));
  EXPECT_TRUE(co_await connection->WriteBody(""));
  EXPECT_EQ((co_await connection->SendHead(Get("/"), 0)).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(co_await connection->WriteBody("three"));
  EXPECT_TRUE(co_await connection->FinishBody());
  auto head = co_await connection->ReadHead();
  EXPECT_EQ(head.value().status, 200u);
  EXPECT_EQ(connection->ContentLength(), std::optional<uint64_t>(21));
  char buffer[8];
  std::string body;
  while (auto n = (co_await connection->ReadBody(buffer)).value()) body.append(buffer, n);
  EXPECT_EQ(body, "POST /s one two three");
  EXPECT_TRUE(connection->Reusable());

  EXPECT_TRUE(co_await connection->SendHead(Post("/l"), 6));
  EXPECT_EQ((co_await connection->FinishBody()).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(co_await connection->WriteBody("123456"));
  EXPECT_EQ((co_await connection->WriteBody("7")).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(co_await connection->FinishBody());
  EXPECT_EQ((co_await connection->ReadHead()).value().status, 200u);
}

TEST(Client, Streams) {
  TestServer server(EchoHandler);
  server.loop().Run(StreamBothWays(server.address()));
}

// A server that says exactly these bytes to every connection once it has seen a request's head.
class Scripted {
 public:
  explicit Scripted(std::string answer)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Scripted() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  void Serve() {
    for (;;) {
      UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
      if (!peer) return;
      char sink[4096];
      if (recv(peer.get(), sink, sizeof(sink), 0) > 0)
        (void)!send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
      shutdown(peer.get(), SHUT_WR);
      while (recv(peer.get(), sink, sizeof(sink), 0) > 0) {
      }
    }
  }
  UniqueFd listener_;
  std::string answer_;
  uint16_t port_ = 0;
  std::thread thread_;
};

Task<void> Expect(std::string address, std::string method, Result<std::string> expected) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  RequestHead head = Get("/");
  head.method = method;
  auto answer = co_await connection->Fetch(head, "", 1 << 20);
  EXPECT_EQ(answer.has_value(), expected.has_value());
  if (answer && expected) EXPECT_EQ(answer->body, *expected);
  if (!answer && !expected) {
    EXPECT_EQ(answer.error().code(), expected.error().code()) << answer.error().message();
  }
  // The scripted server always closes, or worse; when that arrives is the kernel's affair.
  for (int i = 0; i < 6000 && connection->Reusable(); ++i)
    co_await SleepFor(std::chrono::milliseconds(5));
  EXPECT_FALSE(connection->Reusable());
}

void Check(std::string answer, Result<std::string> expected, std::string method = "GET") {
  SCOPED_TRACE(answer);
  Scripted server(std::move(answer));
  TestLoop loop;
  loop.Run(Expect(server.address(), method, std::move(expected)));
}

TEST(Client, FramesAnswersAsTheRulesSay) {
  Check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok");
  Check("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end");
  Check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: 1\r\n\r\n", "ok");
  Check("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "");
  Check("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "");
  Check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", "HEAD");
  Check(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 "
      "OK\r\nContent-Length: 2\r\n\r\nok",
      "ok");
  Check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok");
}

TEST(Client, RefusesBrokenAnswers) {
  Check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", Fail(Code::kDataLoss, ""));
  Check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", Fail(Code::kDataLoss, ""));
  Check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        Fail(Code::kInvalidArgument, ""));
  Check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok",
        Fail(Code::kInvalidArgument, ""));
  Check("HTTP/1.1 200 OK\r\nA: " + std::string(100 << 10, 'a'), Fail(Code::kOutOfRange, ""));
  Check("SSH-2.0-OpenSSH\r\n", Fail(Code::kFailedPrecondition, ""));
  Check("", Fail(Code::kUnavailable, ""));
}

Task<void> KeepsOpen(std::string address, bool reusable) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  auto answer = co_await connection->Fetch(Get("/"), "", 100);
  EXPECT_EQ(answer.value().body, "ok");
  co_await SleepFor(20ms);
  EXPECT_EQ(connection->Reusable(), reusable);
}

Task<void> AnswerAndMore(Exchange& exchange, std::string more) {
  std::string buffered;
  auto stream = std::move(exchange.Upgrade(buffered).value());
  EXPECT_TRUE(co_await stream->Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", more));
  co_await SleepFor(60s);  // for longer than anybody looks at it
}

TEST(Client, UnexpectedBytesSpoilAConnection) {
  for (std::string more : {"", "x"}) {
    Handler handler = [more](Exchange& exchange) { return AnswerAndMore(exchange, more); };
    TestServer server(handler);
    server.loop().Run(KeepsOpen(server.address(), more.empty()));
  }
}

Task<void> RefuseUpload(Exchange& exchange) {
  (void)co_await exchange.Send(Response::Text(413, "too large"));
}

Task<void> UploadRefused(std::string address) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  auto answer = co_await connection->Fetch(Post("/"), std::string(20 << 20, 'x'), 100);
  EXPECT_EQ(answer.value().status, 413u);
  EXPECT_FALSE(connection->Reusable());
}

TEST(Client, SeesEarlyRefusals) {
  TestServer server(RefuseUpload);
  server.loop().Run(UploadRefused(server.address()));
}

Task<void> Tunnel(std::string address) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  RequestHead head = Get("/ws");
  head.headers.Add("Connection", "Upgrade");
  head.headers.Add("Upgrade", "echo");
  EXPECT_TRUE(co_await connection->SendHead(head, 0));
  EXPECT_EQ((co_await connection->ReadHead()).value().status, 101u);
  EXPECT_FALSE(connection->Reusable());
  std::string buffered;
  auto stream = connection->TakeStream(buffered);
  char buffer[16];
  if (buffered.empty()) buffered.assign(buffer, (co_await stream->Read(buffer)).value());
  EXPECT_EQ(buffered, "first");
  EXPECT_TRUE(co_await stream->Write("ping"));
  size_t n = (co_await stream->Read(buffer)).value();
  EXPECT_EQ(std::string(buffer, n), "ping");
}

Task<void> SwitchProtocols(Exchange& exchange) {
  EXPECT_EQ(exchange.request().headers.Value("Upgrade"), "echo");
  std::string buffered;
  auto stream = std::move(exchange.Upgrade(buffered).value());
  EXPECT_TRUE(co_await stream->Write("HTTP/1.1 101 Switching Protocols\r\n\r\n", "first"));
  char buffer[16];
  size_t n = (co_await stream->Read(buffer)).value();
  EXPECT_TRUE(co_await stream->Write({buffer, n}));
}

TEST(Client, TakesTheStreamAfter101) {
  TestServer server(SwitchProtocols);
  server.loop().Run(Tunnel(server.address()));
}

Task<void> NeverAnswer(Exchange& exchange) { co_await exchange.ClientGone(); }

Task<void> Stalls(std::string address) {
  auto connection = std::move(
      (co_await ClientConnection::Connect(address, 30s, {.stall_timeout = 100ms})).value());
  auto answer = co_await connection->Fetch(Get("/"), "", 100);
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(connection->Reusable());
}

TEST(Client, GivesUpOnSilence) {
  TestServer server(NeverAnswer);
  server.loop().Run(Stalls(server.address()));
}

Task<void> BadTargets() {
  auto bad = co_await ClientConnection::Connect("no-port", 1s);
  EXPECT_EQ(bad.error().code(), Code::kInvalidArgument);
  auto refused = co_await ClientConnection::Connect("127.0.0.1:1", 30s);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  auto unknown = co_await ClientConnection::Connect("no-such-host.invalid:80", 30s);
  EXPECT_FALSE(unknown);
}

TEST(Client, SaysWhyItCannotConnect) {
  TestLoop loop;
  loop.Run(BadTargets());
}

Task<void> Injections(std::string address) {
  auto connection = std::move((co_await ClientConnection::Connect(address, 30s)).value());
  auto bad = co_await connection->Fetch(Get("/a HTTP/1.1\r\nX: y"), "", 100);
  EXPECT_EQ(bad.error().code(), Code::kInvalidArgument);
  RequestHead head = Get("/");
  head.headers.Add("Content-Length", "100");
  head.headers.Add("X", "1\r\nY: 2");
  auto answer = co_await connection->Fetch(head, "", 100);
  EXPECT_EQ(answer.value().body, "GET / ");
}

TEST(Client, CannotBeTrickedIntoAnotherRequest) {
  TestServer server(EchoHandler);
  server.loop().Run(Injections(server.address()));
}

Task<void> ByName(uint16_t port) {
  auto connection = co_await ClientConnection::Connect(fmt::format("localhost:{}", port), 30s);
  EXPECT_TRUE(connection) << connection.error().message();
}

TEST(Client, ResolvesNames) {
  TestServer server(EchoHandler);
  server.loop().Run(ByName(server.port()));
}

}  // namespace
}  // namespace caisson::http
