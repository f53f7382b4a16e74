// Who gets in, and what ports that do not answer look like.
#include "base/encoding.h"
#include "gateway/gateway_fixture_test.h"
#include "gateway/signature.h"

namespace caisson::gateway {
namespace {

// ---- who gets in ---------------------------------------------------------------------

TEST_F(GatewayTest, ByHeaderAndByHost) {
  Run([this]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/a?b=c"));
    EXPECT_EQ(seen.status, 200u);
    EXPECT_EQ(seen.body, "hello");
    EXPECT_EQ(last_request_.target, "/a?b=c");
    EXPECT_EQ(last_request_.headers.Value("X-Forwarded-For"), "127.0.0.1");
    http::RequestHead by_host{
        .method = "GET",
        .target = "/",
        .headers = {{"Host", fmt::format("{}-{}.caisson.localhost:8000", upstream_.port(), kId)}}};
    seen = co_await Fetch(by_host);
    EXPECT_EQ(seen.body, "hello");
    EXPECT_EQ(last_request_.headers.Value("Host"), by_host.headers.Value("Host"));
  });
}

TEST_F(GatewayTest, OtherRequestsAreTheControlPlanes) {
  Run([this]() -> Task<void> {
    http::RequestHead request{.method = "GET", .target = "/sandboxes", .headers = {{"Host", "x"}}};
    EXPECT_EQ((co_await Fetch(request)).status, 299u);
    EXPECT_EQ(requests_, 0);
  });
}

TEST_F(GatewayTest, HalfAnAddressIsRefused) {
  Run([this]() -> Task<void> {
    http::RequestHead request = Request("GET", "/");
    request.headers.Remove("E2b-Sandbox-Port");
    Seen seen = co_await Fetch(request);
    EXPECT_EQ(seen.status, 400u);
    EXPECT_THAT(seen.headers.Value("Content-Type"), HasSubstr("text/plain"));
  });
}

TEST_F(GatewayTest, UnknownSandbox) {
  Run([this]() -> Task<void> {
    http::RequestHead request = Request("GET", "/");
    request.headers.Set("E2b-Sandbox-Id", "ighost");
    Seen seen = co_await Fetch(request);
    EXPECT_EQ(seen.status, 502u);
    EXPECT_EQ(seen.body,
              R"({"sandboxId":"ighost","message":"The sandbox was not found","code":502})");
  });
}

TEST_F(GatewayTest, TrafficTokenGuardsEveryPortButEnvds) {
  auto& route = directory_.Add(std::string(kId));
  route.allow_public_traffic = false;
  route.traffic_token = "open sesame";
  Run([this]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(Request("GET", "/"))).status, 403u);
    http::RequestHead wrong = Request("GET", "/");
    wrong.headers.Set("e2b-traffic-access-token", "open sesamf");
    EXPECT_EQ((co_await Fetch(wrong)).status, 403u);
    EXPECT_EQ(requests_, 0);
    http::RequestHead right = Request("GET", "/");
    right.headers.Set("e2b-traffic-access-token", "open sesame");
    EXPECT_EQ((co_await Fetch(right)).status, 200u);
    EXPECT_FALSE(last_request_.headers.Has("e2b-traffic-access-token"));
  });
}

TEST_F(GatewayTest, APortWhereTheServerListensInsideIsClosedToTraffic) {
  auto& route = directory_.Add(std::string(kId));
  route.private_ports = {upstream_.port()};
  Run([this, &route]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/"));
    EXPECT_EQ(seen.status, 502u);
    EXPECT_THAT(seen.body, HasSubstr("The sandbox is running but port is not open"));
    EXPECT_EQ(requests_, 0);
    route.private_ports.clear();
    EXPECT_EQ((co_await Fetch(Request("GET", "/"))).status, 200u);
  });
}

TEST_F(GatewayTest, EnvdNeedsNoTrafficTokenAndHidesItsInternalPaths) {
  directory_.Add(std::string(kId)).allow_public_traffic = false;
  options_.envd_port = upstream_.port();
  Run([this]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(Request("GET", "/health"))).status, 200u);
    for (std::string path : {"/init", "//init", "/init/", "/%69nit", "/init?x=1", "/fsfreeze"}) {
      Seen seen = co_await Fetch(Request("POST", path));
      EXPECT_EQ(seen.status, 404u) << path;
      EXPECT_THAT(seen.body, HasSubstr("\"path\":")) << path;
    }
    EXPECT_EQ(requests_, 1);
    EXPECT_EQ((co_await Fetch(Request("POST", "/initial"))).status, 200u);
  });
}

TEST_F(GatewayTest, SignedUrlFindsItsSandbox) {
  options_.envd_port = upstream_.port();
  directory_.Add("iother").access_token = "another token";
  auto& route = directory_.Add(std::string(kId));
  route.access_token = "the token";
  route.inside_token = "the other one";
  Run([this]() -> Task<void> {
    SignedFields fields{.path = "a b.txt", .operation = "read"};
    std::string signature = fields.signer().Sign("the token");
    http::RequestHead request{
        .method = "GET",
        .target = fmt::format("/files?path=a+b.txt&signature={}", PercentEncode(signature)),
        .headers = {{"Host", "127.0.0.1:8000"}}};
    Seen file = co_await Fetch(request);
    EXPECT_EQ(file.body, "hello");
    // Under this name it must not be a page of the board.
    EXPECT_EQ(file.headers.Value("Content-Security-Policy"), "sandbox");
    EXPECT_EQ(file.headers.Value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(last_request_.target,
              fmt::format("/files?path=a+b.txt&signature={}",
                          PercentEncode(fields.signer().Sign("the other one"))));
    request.method = "POST";  // a signature for reading does not write
    Seen refused = co_await Fetch(request);
    EXPECT_EQ(refused.status, 401u);
    EXPECT_EQ(refused.body, R"({"code":401,"message":"invalid signature"})");
    request.target = "/files?path=a&signature=";
    EXPECT_EQ((co_await Fetch(request)).status, 401u);
  });
}

TEST_F(GatewayTest, OneSandboxLeavesRoomForTheOthers) {
  directory_.Add("iother");
  options_.max_requests = 9;  // so that one may have one
  On("GET", "/slow", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt, "begun");
    co_await SleepFor(30s);
  });
  Run([this]() -> Task<void> {
    auto open = co_await Connect();
    EXPECT_TRUE(co_await open->SendHead(Request("GET", "/slow"), 0));
    EXPECT_TRUE(co_await open->ReadHead());
    Seen refused = co_await Fetch(Request("GET", "/"));
    EXPECT_EQ(refused.status, 429u);
    EXPECT_THAT(refused.body, HasSubstr("\"sandboxId\":\"iabc\""));
    EXPECT_EQ(refused.headers.Value("Connection"), "close");
    http::RequestHead other = Request("GET", "/");
    other.headers.Set("E2b-Sandbox-Id", "iother");
    EXPECT_EQ((co_await Fetch(other)).status, 200u);
    open.reset();
    // As soon as the server has noticed.
    while ((co_await Fetch(Request("GET", "/"))).status == 429u) co_await SleepFor(1ms);
  });
}

TEST_F(GatewayTest, PagesOfAnyOriginMayUseEnvd) {
  options_.envd_port = upstream_.port();
  Run([this]() -> Task<void> {
    http::RequestHead preflight = Request("OPTIONS", "/process.Process/Start");
    preflight.headers.Set("Origin", "https://a.example");
    preflight.headers.Set("Access-Control-Request-Method", "POST");
    EXPECT_EQ((co_await Fetch(preflight)).status, 204u);
    EXPECT_EQ(requests_, 0);
    Seen seen = co_await Fetch(Request("GET", "/health"));
    EXPECT_EQ(seen.headers.Value("Access-Control-Allow-Origin"), "*");
  });
}

// ---- paused sandboxes ---------------------------------------------------------------------

http::RequestHead ToSleeper(http::RequestHead request) {
  request.headers.Set("E2b-Sandbox-Id", "isleeper");
  return request;
}

TEST_F(GatewayTest, TrafficWakesASleeper) {
  directory_.AddSleeper("isleeper");
  Run([this]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(ToSleeper(Request("GET", "/")))).body, "hello");
    EXPECT_EQ((co_await Fetch(ToSleeper(Request("GET", "/")))).body, "hello");
    EXPECT_EQ(directory_.wakes, 1);
  });
}

TEST_F(GatewayTest, OnlyTheRightTrafficTokenWakes) {
  sandbox::Route& route = directory_.AddSleeper("isleeper");
  route.allow_public_traffic = false;
  route.traffic_token = "open sesame";
  Run([this]() -> Task<void> {
    http::RequestHead request = ToSleeper(Request("GET", "/"));
    EXPECT_EQ((co_await Fetch(request)).status, 403u);
    request.headers.Set("e2b-traffic-access-token", "open sesamf");
    EXPECT_EQ((co_await Fetch(request)).status, 403u);
    EXPECT_EQ(directory_.wakes, 0);
    request.headers.Set("e2b-traffic-access-token", "open sesame");
    EXPECT_EQ((co_await Fetch(request)).status, 200u);
  });
}

TEST_F(GatewayTest, OnlyTheRightEnvdTokenOrSignatureWakes) {
  options_.envd_port = upstream_.port();
  directory_.AddSleeper("isleeper").access_token = "the token";
  directory_.AddSleeper("isigned").access_token = "another token";
  Run([this]() -> Task<void> {
    http::RequestHead request = ToSleeper(Request("GET", "/health"));
    Seen refused = co_await Fetch(request);
    EXPECT_EQ(refused.status, 403u);
    EXPECT_THAT(refused.body, HasSubstr("\"sandboxId\":\"isleeper\""));
    request.headers.Set("X-Access-Token", "the tokem");
    EXPECT_EQ((co_await Fetch(request)).status, 403u);
    EXPECT_EQ((co_await Fetch(ToSleeper(Request("POST", "/init")))).status, 404u);
    // A signature that has expired wakes nobody.
    SignedFields fields{.path = "a", .operation = "read", .expiration = "1000"};
    auto url = [&] {
      return fmt::format("/files?path=a&signature={}{}",
                         PercentEncode(fields.signer().Sign("another token")),
                         !fields.expiration ? "" : "&signature_expiration=1000");
    };
    http::RequestHead file{
        .method = "GET", .target = url(), .headers = {{"Host", "127.0.0.1:8000"}}};
    EXPECT_EQ((co_await Fetch(file)).status, 403u);
    EXPECT_EQ(directory_.wakes, 0);
    fields.expiration.reset();
    file.target = url();
    EXPECT_EQ((co_await Fetch(file)).status, 200u);
    request.headers.Set("X-Access-Token", "the token");
    EXPECT_EQ((co_await Fetch(request)).status, 200u);
    EXPECT_EQ(directory_.wakes, 2);
  });
}

TEST_F(GatewayTest, ASleeperThatDoesNotWakeSaysWhy) {
  directory_.AddSleeper("isleeper");
  Run([this]() -> Task<void> {
    for (auto [code, status] : {std::pair(Code::kAborted, 409u),
                                {Code::kResourceExhausted, 429u},
                                {Code::kUnavailable, 429u},
                                {Code::kInternal, 502u},
                                {Code::kNotFound, 502u}}) {
      directory_.wake_fails = Error(code, "x");
      Seen seen = co_await Fetch(ToSleeper(Request("GET", "/")));
      EXPECT_EQ(seen.status, status);
      EXPECT_THAT(seen.body, HasSubstr(fmt::format("\"code\":{}", status)));
      EXPECT_THAT(seen.body, HasSubstr("\"sandboxId\":\"isleeper\""));
    }
  });
}

// ---- ports that do not answer ------------------------------------------------------------

TEST_F(GatewayTest, ClosedPort) {
  Deaf deaf = DeafPort(/*listening=*/false);
  Run([this, port = deaf.port]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/", port));
    EXPECT_EQ(seen.status, 502u);
    EXPECT_EQ(seen.body,
              fmt::format(R"({{"sandboxId":"iabc","message":"The sandbox is running but )"
                          R"(port is not open","port":{},"code":502}})",
                          port));
    EXPECT_EQ(directory_.dials, 6);  // three tries, each by IPv4 and IPv6
    EXPECT_TRUE(directory_.reports.empty());
  });
}

TEST_F(GatewayTest, ServerOnTheIpv6LoopbackOnly) {
  http::Server six(Executor(), {}, Upstream());
  ASSERT_TRUE(six.Listen("[::1]:0"));
  Run([this, &six]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(Request("GET", "/", six.port()))).body, "hello");
    co_await six.Stop(0ms);
  });
}

TEST_F(GatewayTest, PortThatOpensLate) {
  Deaf deaf = DeafPort(/*listening=*/false);
  options_.retry_pauses = {20ms, 50ms, 100ms, 200ms, 1s, 5s, 20s};
  Run([this, port = deaf.port, fd = deaf.socket.Release()]() mutable -> Task<void> {
    auto connection = co_await Connect();
    EXPECT_TRUE(co_await connection->SendHead(Request("GET", "/", port), 0));
    co_await SleepFor(30ms);
    listen(fd, 16);
    EXPECT_TRUE(upstream_.Adopt(UniqueFd(fd)));
    EXPECT_EQ((co_await Receive(*connection)).body, "hello");
  });
}

TEST_F(GatewayTest, ServerThatHangsUp) {
  On("GET", "/hangup", [](http::Exchange& exchange) -> Task<void> {
    exchange.Abort();
    co_return;
  });
  Run([this]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/hangup"));
    EXPECT_EQ(seen.status, 502u);
    EXPECT_THAT(seen.body, HasSubstr("hung up"));
  });
}

TEST_F(GatewayTest, ServerThatNeverAnswers) {
  Deaf deaf = DeafPort(/*listening=*/true);
  options_.idle_timeout = 100ms;
  Run([this, port = deaf.port]() -> Task<void> {
    Seen seen = co_await Fetch(Request("GET", "/", port));
    EXPECT_EQ(seen.status, 504u);
    EXPECT_THAT(seen.body, HasSubstr("does not answer"));
  });
}

TEST_F(GatewayTest, StoppedEnvdIsReportedAndNobodyHangs) {
  Deaf deaf = DeafPort(/*listening=*/true);
  options_.envd_port = static_cast<uint16_t>(deaf.port);
  options_.envd_timeout = 200ms;
  Run([this, port = deaf.port]() -> Task<void> {
    auto begun = std::chrono::steady_clock::now();
    Seen seen = co_await Fetch(Request("POST", "/process.Process/List", port), "{}");
    EXPECT_EQ(seen.status, 502u);
    EXPECT_THAT(seen.body, HasSubstr("envd does not answer"));
    EXPECT_EQ(directory_.reports.size(), 1u);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);  // of ten minutes
  });
}

TEST_F(GatewayTest, WhatStandsStillForACopyIsNotCut) {
  options_.envd_port = upstream_.port();
  options_.envd_timeout = 50ms;
  directory_.still.insert(std::string(kId));
  On("GET", "/health", [](http::Exchange&) -> Task<void> { co_await SleepFor(2s); });
  std::chrono::milliseconds silence = 400ms;
  On("POST", "/watch", [&silence](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt, "begin ");
    co_await SleepFor(silence);
    (void)co_await exchange.FinishStream("end");
  });
  Run([this, &silence]() -> Task<void> {
    EXPECT_EQ((co_await Fetch(Request("POST", "/watch"))).body, "begin end");
    EXPECT_TRUE(directory_.reports.empty());
    directory_.still.clear();
    silence = 30s;
    EXPECT_FALSE((co_await Fetch(Request("POST", "/watch"))).whole);
  });
}

TEST_F(GatewayTest, ASilentStreamOfALivingEnvdStays) {
  options_.envd_port = upstream_.port();
  options_.envd_timeout = 1s;  // time enough to answer the question whether it lives
  On("POST", "/watch", [](http::Exchange& exchange) -> Task<void> {
    (void)co_await exchange.StartStream({}, std::nullopt, "begin ");
    co_await SleepFor(4s);
    (void)co_await exchange.FinishStream("end");
  });
  Run([this]() -> Task<void> {
    Seen seen = co_await Fetch(Request("POST", "/watch"));
    EXPECT_EQ(seen.body, "begin end");
    EXPECT_TRUE(seen.whole);
    EXPECT_TRUE(directory_.reports.empty());
  });
}

TEST_F(GatewayTest, CountsWhatHappened) {
  Run([this]() -> Task<void> {
    (void)co_await Fetch(Request("GET", "/"));
    std::string text = metrics_.Text();
    EXPECT_THAT(text, HasSubstr("caisson_gateway_requests_total{result=\"2xx\",to=\"port\"} 1"));
    EXPECT_THAT(text, HasSubstr("caisson_gateway_requests_in_flight 0"));
    EXPECT_THAT(text, HasSubstr("caisson_gateway_bytes_total{direction=\"out\"} 5"));
  });
}

}  // namespace
}  // namespace caisson::gateway
