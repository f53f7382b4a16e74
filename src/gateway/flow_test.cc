// What moves through, and what happens when one side ends.
#include "gateway/flow.h"

#include "gateway/gateway_fixture_test.h"

namespace caisson::gateway {
namespace {

// ---- bodies ----------------------------------------------------------------------------------

http::Handler Echo() {
  return [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, exchange.ContentLength());
    std::string buffer(16 << 10, '\0');
    for (;;) {
      auto n = co_await exchange.Read(buffer);
      if (!n || *n == 0) break;
      if (!co_await exchange.Write(std::string_view(buffer).substr(0, *n))) co_return;
    }
    (void)co_await exchange.FinishStream();
  };
}

TEST_F(GatewayTest, BothBodiesMoveAtOnce) {
  On("POST", "/echo", Echo());
  Run([this]() -> Task<void> {
    // More than all buffers on the way: it only passes if nobody waits for the end of the request.
    constexpr size_t kChunk = 1 << 20, kChunks = 24;
    for (bool chunked : {false, true}) {
      auto connection = co_await Connect();
      std::optional<uint64_t> length;
      if (!chunked) length = kChunk * kChunks;
      EXPECT_TRUE(co_await connection->SendHead(Request("POST", "/echo"), length));
      Seen seen;
      bool received = false;
      tasks_.Spawn("reader", ReceiveInto(*connection, seen, received));
      std::string chunk(kChunk, 'x');
      for (size_t i = 0; i < kChunks; ++i) {
        chunk[0] = static_cast<char>('a' + i);
        EXPECT_TRUE(co_await connection->WriteBody(chunk));
      }
      EXPECT_TRUE(co_await connection->FinishBody());
      while (!received) co_await SleepFor(5ms);
      EXPECT_EQ(seen.body.size(), kChunk * kChunks);
      for (size_t i = 0; i < kChunks && seen.body.size() == kChunk * kChunks; ++i)
        EXPECT_EQ(seen.body[i * kChunk], static_cast<char>('a' + i));
      EXPECT_TRUE(seen.whole);
    }
  });
}

TEST_F(GatewayTest, AClientThatAsksFirstIsToldToSend) {
  On("POST", "/echo", Echo());
  Run([this]() -> Task<void> {
    for (size_t size : {size_t{100}, size_t{1} << 20}) {
      auto connection = co_await Connect();
      http::RequestHead head = Request("POST", "/echo");
      head.headers.Set("Expect", "100-continue");
      EXPECT_TRUE(co_await connection->SendHead(std::move(head), size));
      std::string interim(25, '\0');  // all of it: "HTTP/1.1 100 Continue" and two line ends
      auto n = co_await WithDeadline<size_t>(30s, "waiting", connection->stream().Read(interim));
      EXPECT_TRUE(n && interim.starts_with("HTTP/1.1 100 ")) << size;
      EXPECT_TRUE(co_await connection->WriteBody(std::string(size, 'x')));
      EXPECT_EQ((co_await Receive(*connection)).body.size(), size);
    }
  });
}

TEST_F(GatewayTest, AnAnswerBeforeTheEndOfTheRequest) {
  On("POST", "/refuse", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.Send(http::Response::Text(413, "too much"));
  });
  Run([this]() -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("POST", "/refuse"), std::nullopt, "begin"));
    Seen seen = co_await Receive(*connection);
    EXPECT_EQ(seen.status, 413u);
    EXPECT_EQ(seen.body, "too much");
  });
}

TEST_F(GatewayTest, EveryWriteArrivesAtOnce) {
  Condition more(Executor());
  On("GET", "/stream", [&more](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt, "one");
    co_await more.Wait(5s);
    (void)co_await exchange.FinishStream("two");
  });
  Run([this, &more]() -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("GET", "/stream"), 0));
    EXPECT_TRUE(co_await connection->ReadHead());
    char buffer[16];
    auto n = co_await connection->ReadBody(buffer);
    EXPECT_EQ(std::string(buffer, n.value_or(0)), "one");
    more.Notify();
    n = co_await connection->ReadBody(buffer);
    EXPECT_EQ(std::string(buffer, n.value_or(0)), "two");
  });
}

TEST_F(GatewayTest, AnswersWithoutABody) {
  On("HEAD", "/file", [](http::Exchange& exchange) -> Task<void> {
    http::ResponseHead head;
    head.headers.Set("Content-Length", "12345");
    (void)co_await exchange.StartStream(head, 12345);
    (void)co_await exchange.FinishStream();
  });
  On("HEAD", "/page", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt);
    (void)co_await exchange.FinishStream();
  });
  for (unsigned status : {204u, 304u})
    On("GET", fmt::format("/{}", status), [status](http::Exchange& exchange) -> Task<void> {
      (void)co_await exchange.Send(http::Response::Empty(status));
    });
  Run([this]() -> Task<void> {
    Seen head = co_await Fetch(Request("HEAD", "/file"));
    EXPECT_EQ(head.status, 200u);
    EXPECT_EQ(head.headers.Value("Content-Length"), "12345");
    EXPECT_TRUE(head.whole && head.body.empty());
    head = co_await Fetch(Request("HEAD", "/page"));
    EXPECT_FALSE(head.headers.Has("Content-Length"));
    EXPECT_TRUE(head.whole && head.body.empty());
    EXPECT_EQ((co_await Fetch(Request("GET", "/204"))).status, 204u);
    EXPECT_EQ((co_await Fetch(Request("GET", "/304"))).status, 304u);
  });
}

// ---- lives and deaths ---------------------------------------------------------------------------

TEST_F(GatewayTest, ConnectionsAreReused) {
  options_.envd_port = upstream_.port();
  Run([this]() -> Task<void> {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ((co_await Fetch(Request("POST", "/rpc"), "{}")).body, "hello");
    EXPECT_EQ(directory_.dials, 1);
    EXPECT_EQ(directory_.subscriptions(std::string(kId)), 1u);
  });
}

TEST_F(GatewayTest, AConnectionClosedWhileIdleIsReplaced) {
  On("GET", "/once", [](http::Exchange& exchange) -> Task<void> {
    http::Response response = http::Response::Text(200, "once");
    (void)co_await exchange.Send(response);
    exchange.Abort();  // announced to nobody
  });
  Run([this]() -> Task<void> {
    for (int i = 0; i < 4; ++i) EXPECT_EQ((co_await Fetch(Request("GET", "/once"))).body, "once");
  });
}

TEST_F(GatewayTest, IdleConnectionsAndLanesAreGivenUp) {
  options_.max_idle_time = 1s;
  Run([this]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(Request("GET", "/"))).status, 200u);
    EXPECT_EQ(upstream_.connections(), 1u);
    for (int i = 0; i < 3000 && upstream_.connections() > 0; ++i) co_await SleepFor(10ms);
    EXPECT_EQ(upstream_.connections(), 0u);
    EXPECT_EQ(directory_.subscriptions(std::string(kId)), 0u);
  });
}

TEST_F(GatewayTest, DeathOfTheSandboxResetsItsStreams) {
  On("GET", "/stream", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt, "begin");
    co_await exchange.ClientGone();
  });
  Run([this]() -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("GET", "/stream"), 0));
    EXPECT_TRUE(co_await connection->ReadHead());
    char buffer[16];
    EXPECT_EQ((co_await connection->ReadBody(buffer)).value_or(0), 5u);
    auto begun = std::chrono::steady_clock::now();
    directory_.Kill(std::string(kId));
    auto end = co_await connection->ReadBody(buffer);
    EXPECT_FALSE(end);
    EXPECT_EQ(end.error().sys_errno(), ECONNRESET);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);  // without waiting for a timeout
    EXPECT_EQ((co_await Fetch(Request("GET", "/stream"))).status, 502u);
  });
}

TEST_F(GatewayTest, DeathBeforeTheAnswerIsA502) {
  On("GET", "/slow",
     [](http::Exchange& exchange) -> Task<void> { co_await exchange.ClientGone(); });
  Run([this]() -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("GET", "/slow"), 0));
    while (requests_ == 0) co_await SleepFor(1ms);
    directory_.Kill(std::string(kId));
    Seen seen = co_await Receive(*connection);
    EXPECT_EQ(seen.status, 502u);
    EXPECT_THAT(seen.body, HasSubstr("The sandbox was not found"));
  });
}

TEST_F(GatewayTest, AnswerThatBreaksOffIsReset) {
  On("GET", "/half", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, 100'000, std::string(50'000, 'x'));
    exchange.Abort();
  });
  Run([this]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/half"));
    EXPECT_EQ(seen.status, 200u);
    EXPECT_FALSE(seen.whole);
  });
}

TEST_F(GatewayTest, AVanishedClientEndsTheWorkInTheSandbox) {
  bool noticed = false;
  On("POST", "/work", [&noticed](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.ReadAll(100);
    co_await exchange.ClientGone();
    noticed = true;
  });
  Run([this, &noticed]() -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("POST", "/work"), 4, "body"));
    while (requests_ == 0) co_await SleepFor(1ms);
    connection->Close();
    for (int i = 0; i < 3000 && !noticed; ++i) co_await SleepFor(10ms);
    EXPECT_TRUE(noticed);
  });
}

}  // namespace
}  // namespace caisson::gateway
