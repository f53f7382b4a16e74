// Which failures of a sandbox server are tried again, when, and when nobody asks it any more.
#include "sdk/control_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <deque>

#include "base/testing.h"
#include "http/server.h"

namespace caisson::sdk {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

http::Response Refuse(unsigned status, std::string message) {
  return http::Response::Json(status, boost::json::object{{"code", status}, {"message", message}});
}

// A server that answers what the test wants, in this order; then it is well.
class ControlClientTest : public ::testing::Test {
 protected:
  ControlClientTest()
      : server_(io_.get_executor(), {},
                [this](http::Exchange& exchange) { return Answer(*this, exchange); }) {
    EXPECT_TRUE(server_.Listen("127.0.0.1:0"));
    client_.emplace(Options());
  }
  ~ControlClientTest() override { caisson::testing::Await(io_, server_.Stop(0ms)); }

  ControlOptions Options() {
    ControlOptions options;
    options.endpoint = Endpoint::Parse(fmt::format("http://127.0.0.1:{}", server_.port())).value();
    options.api_key = "e2b_key";
    options.timeout = 30s;
    options.retry.sleep = [this](milliseconds wait) { return Sleep(*this, wait); };
    options.breaker_failures = 2;
    options.breaker_open = 3s;
    return options;
  }

  static Task<void> Answer(ControlClientTest& test, http::Exchange& exchange) {
    ++test.requests_;
    test.last_ = exchange.request();
    auto body = co_await exchange.ReadAll(1 << 20);
    if (body) test.body_ = *body;
    http::Response response = http::Response::Json(
        200, boost::json::object{{"sandboxID", "iabc"}, {"templateID", "base"}});
    if (!test.answers_.empty()) {
      response = std::move(test.answers_.front());
      test.answers_.pop_front();
    }
    if (response.status == 0) co_return exchange.Abort();
    if (response.status == 1) co_await SleepFor(60s);
    while (test.requests_ < test.together_) co_await SleepFor(5ms);
    (void)co_await exchange.Send(std::move(response));
  }
  static Task<void> Sleep(ControlClientTest& test, milliseconds wait) {
    test.waits_.push_back(wait);
    co_return;
  }
  static http::Response Special(unsigned status) {
    http::Response response;
    response.status = status;
    return response;
  }
  template <class T>
  T Await(Task<T> task) {
    return caisson::testing::Await(io_, std::move(task));
  }

  asio::io_context io_{1};
  http::Server server_;
  std::optional<ControlClient> client_;
  std::deque<http::Response> answers_;
  std::vector<milliseconds> waits_;
  int requests_ = 0;
  int together_ = 0;  // nobody is answered before so many have asked
  http::RequestHead last_;
  std::string body_;
};

TEST_F(ControlClientTest, TwoFailuresAreGotOver) {
  answers_ = {Refuse(503, "full"), Special(0)};
  auto made = Await(client_->Create({.template_id = "base", .idempotency_key = "k1"}));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->id, "iabc");
  EXPECT_EQ(requests_, 3);
  EXPECT_THAT(waits_, ElementsAre(1s, 2s));
  EXPECT_EQ(last_.headers.Value("X-API-KEY"), "e2b_key");
  EXPECT_EQ(last_.headers.Value("Idempotency-Key"), "k1");
  EXPECT_THAT(body_, HasSubstr(R"("templateID":"base")"));
}

TEST_F(ControlClientTest, ManyAskSideBySideOnOneThread) {
  // Client and server share it: a call that blocked would be answered never.
  ControlOptions patient = Options();
  patient.timeout = 60s;
  client_.emplace(std::move(patient));
  together_ = 20;
  int made = 0;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < together_; ++i)
    group.Spawn("create", [](ControlClient& client, int& count) -> Task<void> {
      if (co_await client.Create({.template_id = "base"})) ++count;
    }(*client_, made));
  EXPECT_TRUE(Await(group.Join(60s)));
  EXPECT_EQ(made, together_);
  EXPECT_EQ(requests_, together_);
}

TEST_F(ControlClientTest, ThreeFailuresAreTheEnd) {
  answers_ = {Refuse(500, "a"), Refuse(502, "b"), Refuse(503, "the last")};
  auto made = Await(client_->Create({.template_id = "base"}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
  EXPECT_THAT(made.error().message(), HasSubstr("the last"));
  EXPECT_EQ(requests_, 3);
}

TEST_F(ControlClientTest, WhatIsRefusedIsNotAskedAgain) {
  for (auto [status, code] : {std::pair(400u, Code::kInvalidArgument),
                              {401u, Code::kUnauthenticated},
                              {403u, Code::kUnauthenticated},
                              {404u, Code::kNotFound},
                              {409u, Code::kFailedPrecondition},
                              {422u, Code::kInvalidArgument}}) {
    requests_ = 0;
    answers_ = {Refuse(status, "no")};
    auto found = Await(client_->Get("iabc"));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), code) << status;
    EXPECT_EQ(requests_, 1) << status;
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(ControlClientTest, AKeyThatIsRefusedIsReplacedByTheNext) {
  ControlOptions options = Options();
  options.api_key = "e2b_old, e2b_new";
  ControlClient client(std::move(options));
  std::vector<std::string> told;
  client.keys().OnRefused(
      [&](const std::string& id, const std::string& next) { told.push_back(id + " " + next); });
  auto old_id = client.keys().Uses().at(0).id, new_id = client.keys().Uses().at(1).id;
  ASSERT_TRUE(Await(client.Get("iabc")));
  EXPECT_EQ(last_.headers.Value("X-API-KEY"), "e2b_old");
  // Once it is refused the same call goes on with the other, and so do all that follow.
  answers_ = {Refuse(401, "revoked")};
  ASSERT_TRUE(Await(client.Get("iabc")));
  ASSERT_TRUE(Await(client.Get("iabc")));
  EXPECT_EQ(last_.headers.Value("X-API-KEY"), "e2b_new");
  EXPECT_EQ(requests_, 4);
  auto uses = client.keys().Uses();
  EXPECT_EQ(uses[0].calls, 2u);
  EXPECT_EQ(uses[0].refused, 1u);
  EXPECT_EQ(uses[1].calls, 2u);
  EXPECT_FALSE(uses[0].current);
  EXPECT_TRUE(uses[1].current);
  EXPECT_THAT(told, ElementsAre(old_id + " " + new_id));
  // All refused: each is asked once, and it is told once.
  requests_ = 0;
  answers_ = {Refuse(401, "no"), Refuse(403, "no"), Refuse(401, "no"), Refuse(401, "no")};
  EXPECT_EQ(Await(client.Get("iabc")).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(Await(client.Get("iabc")).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(requests_, 4);
  EXPECT_THAT(told, ElementsAre(old_id + " " + new_id, new_id + " "));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(ControlClientTest, RetryAfterIsHonoured) {
  http::Response busy = Refuse(429, "slow down");
  busy.headers.Set("Retry-After", "7");
  http::Response long_busy = Refuse(429, "slow down");
  long_busy.headers.Set("Retry-After", "3600");
  answers_ = {busy, long_busy};
  EXPECT_TRUE(Await(client_->Get("iabc")));
  EXPECT_THAT(waits_, ElementsAre(7s, 10s));
}

TEST_F(ControlClientTest, ATimeoutIsTriedAgain) {
  ControlOptions impatient = Options();
  impatient.timeout = 2s;
  client_.emplace(std::move(impatient));
  answers_ = {Special(1)};
  EXPECT_TRUE(Await(client_->Get("iabc")));
  EXPECT_EQ(requests_, 2);
}

TEST_F(ControlClientTest, TheCircuitOpensAndClosesAgain) {
  for (int i = 0; i < 6; ++i) answers_.push_back(Refuse(503, "down"));
  EXPECT_FALSE(Await(client_->Get("iabc")));
  EXPECT_FALSE(Await(client_->Get("iabc")));
  EXPECT_EQ(requests_, 6);
  auto open = Await(client_->Get("iabc"));
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), Code::kUnavailable);
  EXPECT_THAT(open.error().message(), HasSubstr("circuit_open"));
  EXPECT_EQ(requests_, 6);
  caisson::testing::Await(io_, SleepFor(3100ms));
  EXPECT_TRUE(Await(client_->Get("iabc")));
  EXPECT_TRUE(Await(client_->Get("iabc")));
}

TEST(CircuitBreakerTest, OnlyOneTriesWhileItIsHalfOpen) {
  auto now = std::chrono::steady_clock::time_point();
  CircuitBreaker breaker(2, 10s, [&] { return now; });
  Status outage = Fail(Code::kUnavailable, "down");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(breaker.Enter("it"));
    breaker.Leave(outage);
  }
  EXPECT_FALSE(breaker.Enter("it"));
  now += 11s;
  EXPECT_TRUE(breaker.Enter("it"));
  EXPECT_FALSE(breaker.Enter("it"));
  breaker.Leave(outage);
  EXPECT_FALSE(breaker.Enter("it"));
  now += 11s;
  EXPECT_TRUE(breaker.Enter("it"));
  breaker.Leave(Fail(Code::kNotFound, "a server that refuses is alive"));
  EXPECT_TRUE(breaker.Enter("it"));
  EXPECT_TRUE(breaker.Enter("it"));
}

TEST(RetryTest, WaitsGrowBetweenOneAndTenSeconds) {
  RetryOptions options{.attempts = 8};
  Error down(Code::kUnavailable, "down");
  std::vector<milliseconds> waits;
  for (int attempt = 1; auto wait = NextWait(options, attempt, down, {}); ++attempt)
    waits.push_back(*wait);
  EXPECT_THAT(waits, ElementsAre(1s, 2s, 4s, 8s, 10s, 10s, 10s));
}

TEST(EndpointTest, IsAUrlWithoutAPath) {
  EXPECT_EQ(Endpoint::Parse("https://api.e2b.app/")->host_port, "api.e2b.app:443");
  EXPECT_EQ(Endpoint::Parse("http://[::1]:80")->host_port, "[::1]:80");
  EXPECT_EQ(Endpoint::Parse("http://[::1]")->host_port, "[::1]:80");
  EXPECT_EQ(Endpoint::Parse("https://api.e2b.app")->Host(), "api.e2b.app");
  for (const char* wrong : {"", "api.e2b.app", "ftp://a", "http://", "http://a/b"})
    EXPECT_FALSE(Endpoint::Parse(wrong)) << wrong;
  ControlClient client({.endpoint = Endpoint::Parse("https://api.e2b.app").value()});
  EXPECT_EQ(client.Host("iabc", 3000), "3000-iabc.e2b.app");
}

}  // namespace
}  // namespace caisson::sdk
