// Requests that leave HTTP.
#include "gateway/gateway_fixture_test.h"

namespace caisson::gateway {
namespace {

// --------------------------------------------------------------------------------------

// Switches to a protocol that answers everything in capitals.
Task<void> Shout(http::Exchange& exchange) {
  std::string buffered;
  auto stream = exchange.Upgrade(buffered);
  (void)co_await (*stream)->Write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n"
      "X-Mine: yes\r\n\r\nREADY ");
  std::string buffer(1024, '\0');
  for (;;) {
    auto n = co_await (*stream)->Read(buffer);
    if (!n || *n == 0) break;
    std::string text = buffer.substr(0, *n);
    for (char& c : text) c = static_cast<char>(toupper(c));
    if (!co_await (*stream)->Write(text)) break;
  }
  co_await (*stream)->ShutdownWrite();
}

class GatewayUpgradeTest : public GatewayTest {
 protected:
  GatewayUpgradeTest() { On("GET", "/shout", Shout); }

  // Upgrades and returns the stream after the "READY " that the server sends first.
  Task<std::unique_ptr<http::Stream>> Upgrade() {
    auto connection = co_await Connect();
    http::RequestHead request = Request("GET", "/shout");
    request.headers.Set("Connection", "Upgrade");
    request.headers.Set("Upgrade", "shout");
    EXPECT_TRUE(co_await connection->SendHead(std::move(request), 0));
    auto head = co_await connection->ReadHead();
    EXPECT_TRUE(head && head->status == 101);
    EXPECT_EQ(head->headers.Value("X-Mine"), "yes");
    EXPECT_EQ(head->headers.Value("Upgrade"), "shout");
    std::string buffered;
    auto stream = connection->TakeStream(buffered);
    while (buffered.size() < 6) buffered += co_await Hear(*stream);
    EXPECT_EQ(buffered, "READY ");
    co_return std::move(stream);
  }
  static Task<std::string> Hear(http::Stream& stream) {
    std::string buffer(1024, '\0');
    auto n = co_await stream.Read(buffer);
    co_return n ? buffer.substr(0, *n) : "(error)";
  }
};

TEST_F(GatewayUpgradeTest, TunnelsBothWaysToTheEnd) {
  Run([this]() -> Task<void> {
    auto stream = co_await Upgrade();
    for (std::string word : {"hello", "again"}) {
      EXPECT_TRUE(co_await stream->Write(word));
      std::string upper = word;
      for (char& c : upper) c = static_cast<char>(toupper(c));
      EXPECT_EQ(co_await Hear(*stream), upper);
    }
    co_await stream->ShutdownWrite();
    EXPECT_EQ(co_await Hear(*stream), "");
  });
}

TEST_F(GatewayUpgradeTest, DeathOfTheSandboxResetsTheTunnel) {
  Run([this]() -> Task<void> {
    auto stream = co_await Upgrade();
    directory_.Kill(std::string(kId));
    EXPECT_EQ(co_await Hear(*stream), "(error)");
  });
}

TEST_F(GatewayUpgradeTest, ARefusedUpgradeIsAnOrdinaryAnswer) {
  Run([this]() -> Task<void> {
    http::RequestHead request = Request("GET", "/elsewhere");
    request.headers.Set("Connection", "Upgrade");
    request.headers.Set("Upgrade", "websocket");
    Seen seen = co_await Fetch(request);
    EXPECT_EQ(seen.status, 200u);
    EXPECT_EQ(seen.body, "hello");
  });
}

}  // namespace
}  // namespace caisson::gateway
