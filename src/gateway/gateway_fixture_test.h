// The gateway between a real client and a real server, all in this process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "gateway/fake_directory_test.h"
#include "gateway/gateway.h"
#include "http/client.h"
#include "http/router.h"

namespace caisson::gateway {

using namespace std::chrono_literals;
using testing::HasSubstr;

inline constexpr std::string_view kId = "iabc";

// A client's view of an answer: its status and the body up to the end, or up to where it broke off.
struct Seen {
  unsigned status = 0;
  http::Headers headers;
  std::string body;
  bool whole = false;
};

class GatewayTest : public testing::Test {
 protected:
  GatewayTest() : tasks_(loop_.get_executor()), upstream_(Executor(), {}, Upstream()) {
    EXPECT_TRUE(upstream_.Listen("127.0.0.1:0"));
    directory_.Add(std::string(kId));
    options_.envd_port = 1;  // nobody's, unless a test says otherwise
    options_.retry_pauses = {5ms, 5ms};
    options_.envd_timeout = 10s;  // so that no other test depends on how fast the machine is
  }

  asio::any_io_executor Executor() { return loop_.get_executor(); }

  http::Handler Upstream() {
    return [this](http::Exchange& exchange) { return Answer(*this, exchange); };
  }
  static Task<void> Answer(GatewayTest& self, http::Exchange& exchange) {
    ++self.requests_;
    self.last_request_ = exchange.request();
    auto match = self.router_.Find(exchange.request().method, exchange.request().Path());
    if (match.handler) co_return co_await (*match.handler)(exchange, match.params);
    (void)co_await exchange.Send(http::Response::Text(200, "hello"));
  }
  // What the server in the sandbox does for a path.
  void On(std::string_view method, std::string_view path, http::Handler handler) {
    router_.Add(method, path, [handler](http::Exchange& exchange, http::PathParams) {
      return handler(exchange);
    });
  }

  // Runs a test's coroutine with the gateway up, for at most a minute. `body` is kept until the
  // coroutine ends, so what it captures stays valid.
  void Run(std::function<Task<void>()> body) {
    gateway_ = std::make_unique<Gateway>(Executor(), options_, directory_, metrics_);
    gateway_->Start();
    front_ = std::make_unique<http::Server>(
        Executor(), http::ServerOptions{},
        [this](http::Exchange& exchange) { return Front(*gateway_, exchange); });
    ASSERT_TRUE(front_->Listen("127.0.0.1:0"));
    bool done = false;
    tasks_.Spawn("test", Body(*this, std::move(body), done));
    auto end = std::chrono::steady_clock::now() + 60s;
    while (!done && std::chrono::steady_clock::now() < end) loop_.run_one_for(50ms);
    EXPECT_TRUE(done) << "the test did not end in time";
    front_.reset();
    gateway_.reset();
  }
  static Task<void> Body(GatewayTest& self, std::function<Task<void>()> body, bool& done) {
    co_await body();
    co_await self.front_->Stop(100ms);
    co_await self.gateway_->Stop();
    co_await self.upstream_.Stop(0ms);
    done = true;
  }
  static Task<void> Front(Gateway& gateway, http::Exchange& exchange) {
    if (!co_await gateway.Handle(exchange))
      (void)co_await exchange.Send(http::Response::Text(299, "control plane"));
  }

  http::RequestHead Request(std::string method, std::string target, int port = 0) {
    return {.method = std::move(method),
            .target = std::move(target),
            .headers = {{"Host", "localhost"},
                        {"E2b-Sandbox-Id", std::string(kId)},
                        {"E2b-Sandbox-Port", std::to_string(port ? port : upstream_.port())}}};
  }

  Task<std::unique_ptr<http::ClientConnection>> Connect() {
    auto made =
        co_await http::ClientConnection::Connect(fmt::format("127.0.0.1:{}", front_->port()), 30s);
    EXPECT_TRUE(made);
    co_return std::move(*made);
  }
  static Task<Seen> Receive(http::ClientConnection& connection) {
    Seen seen;
    auto head = co_await connection.ReadHead();
    if (!head) co_return seen;
    seen.status = head->status;
    seen.headers = std::move(head->headers);
    std::string buffer(64 << 10, '\0');
    for (;;) {
      auto n = co_await connection.ReadBody(buffer);
      if (!n) co_return seen;
      if (*n == 0) break;
      seen.body.append(buffer, 0, *n);
    }
    seen.whole = true;
    co_return seen;
  }
  static Task<void> ReceiveInto(http::ClientConnection& connection, Seen& seen, bool& received) {
    seen = co_await Receive(connection);
    received = true;
  }
  Task<Seen> Fetch(http::RequestHead head, std::string body = "") {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(std::move(head), body.size(), body));
    co_return co_await Receive(*connection);
  }

  // A port of 127.0.0.1 that is bound, and listens if asked to, but never accepts.
  struct Deaf {
    UniqueFd socket;
    int port;
  };
  static Deaf DeafPort(bool listening) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    if (listening) EXPECT_EQ(listen(socket.get(), 16), 0);
    EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return {std::move(socket), ntohs(address.sin_port)};
  }

  asio::io_context loop_;
  TaskGroup tasks_;
  http::Router router_;
  http::Server upstream_;
  FakeDirectory directory_;
  Metrics metrics_;
  GatewayOptions options_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<http::Server> front_;
  int requests_ = 0;
  http::RequestHead last_request_;
};

}  // namespace caisson::gateway
