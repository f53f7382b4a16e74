#include "gateway/editor_pass.h"

#include "gateway/gateway_fixture_test.h"

namespace caisson::gateway {
namespace {

constexpr std::string_view kToken = "open sesame";
constexpr uint16_t kPort = 13337;

http::RequestHead Asks(http::Headers headers, std::string target = "/",
                       std::string method = "GET") {
  headers.Set("Host", "13337-iabc.caisson.localhost:8000");
  return {.method = std::move(method), .target = std::move(target), .headers = std::move(headers)};
}
http::Headers WithCookie() {
  return {{"Cookie", fmt::format("theme=dark; {}={}", kEditorPass,
                                 MakeEditorPass(kToken, kPort, Now() + 1min))}};
}

TEST(EditorPass, IsGoodForOneSandboxOnePortAndItsTime) {
  std::string pass = MakeEditorPass(kToken, kPort, Now() + 60s);
  EXPECT_TRUE(IsEditorPass(pass, kToken, kPort, Now()));
  EXPECT_FALSE(IsEditorPass(pass, kToken, kPort, Now() + 61s));
  EXPECT_FALSE(IsEditorPass(pass, kToken, 13338, Now()));
  EXPECT_FALSE(IsEditorPass(pass, "another's", kPort, Now()));
  EXPECT_FALSE(IsEditorPass("9" + pass, kToken, kPort, Now()));
  EXPECT_FALSE(IsEditorPass(pass.substr(0, pass.size() - 1), kToken, kPort, Now()));
  for (std::string_view broken : {"", ".", "9999999999", "9999999999.", "x.y"})
    EXPECT_FALSE(IsEditorPass(broken, kToken, kPort, Now())) << broken;
  // A sandbox without a token lets nobody in.
  EXPECT_FALSE(IsEditorPass(MakeEditorPass("", kPort, Now() + 60s), "", kPort, Now()));
  EXPECT_FALSE(MayUseEditor(Asks({{"E2b-Traffic-Access-Token", ""}}), "", kPort));
}

TEST(EditorPass, BecomesACookie) {
  std::string target =
      fmt::format("/?{}={}", kEditorPass, MakeEditorPass(kToken, kPort, Now() + 60s));
  auto accepted = AcceptEditorPass(Asks({}, target), kToken, kPort, 3600s, /*tls=*/true);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->status, 303u);
  EXPECT_EQ(accepted->headers.Value("Location"), "/");
  std::string cookie(accepted->headers.Value("Set-Cookie"));
  EXPECT_THAT(cookie, HasSubstr("; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600; Secure"));
  EXPECT_EQ(cookie.find("Domain"), std::string::npos);
  http::Headers with{{"Cookie", cookie.substr(0, cookie.find(';'))}};
  EXPECT_TRUE(MayUseEditor(Asks(with), kToken, kPort));

  EXPECT_FALSE(AcceptEditorPass(Asks({}, target, "POST"), kToken, kPort, 3600s, false));
  EXPECT_FALSE(AcceptEditorPass(Asks({}, "/" + target), kToken, kPort, 3600s, false));
  EXPECT_FALSE(AcceptEditorPass(Asks({}, "/?caisson_editor=1.2"), kToken, kPort, 3600s, false));
  EXPECT_FALSE(AcceptEditorPass(Asks({}), kToken, kPort, 3600s, false));
}

TEST(EditorPass, ACookieServesOnlyTheEditorsOwnPage) {
  auto may = [](std::map<std::string, std::string> more) {
    http::RequestHead request = Asks(WithCookie());
    for (const auto& [name, value] : more) request.headers.Set(name, value);
    return MayUseEditor(request, kToken, kPort);
  };
  EXPECT_TRUE(may({}));
  EXPECT_TRUE(may({{"Origin", "http://13337-iabc.caisson.localhost:8000"}}));
  EXPECT_TRUE(may({{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}}));
  EXPECT_TRUE(may({{"Sec-Fetch-Site", "none"}}));
  std::map<std::string, std::string> link = {{"Sec-Fetch-Site", "cross-site"},
                                             {"Sec-Fetch-Mode", "navigate"},
                                             {"Sec-Fetch-Dest", "document"}};
  EXPECT_TRUE(may(link));
  link["Sec-Fetch-Dest"] = "iframe";
  EXPECT_FALSE(may(link));
  EXPECT_FALSE(may({{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "no-cors"}}));
  // A WebSocket of another sandbox's page.
  EXPECT_FALSE(may({{"Origin", "http://3000-iother.caisson.localhost:8000"}}));
  EXPECT_FALSE(may({{"Origin", "null"}}));
}

TEST_F(GatewayTest, TheEditorsPortIsNeverPublic) {
  auto& route = directory_.Add(std::string(kId));
  route.traffic_token = kToken;
  options_.editor_port = upstream_.port();
  Run([this]() -> Task<void> {
    Seen refused = co_await Fetch(Request("GET", "/"));
    EXPECT_EQ(refused.status, 403u);
    EXPECT_THAT(refused.body, HasSubstr("POST /api/v1/sandboxes/{id}/editor"));
    http::RequestHead wrong = Request("GET", "/");
    wrong.headers.Set("e2b-traffic-access-token", "open sesamf");
    EXPECT_EQ((co_await Fetch(wrong)).status, 403u);
    http::RequestHead late = Request("GET", "/");
    late.headers.Set("Cookie", fmt::format("{}={}", kEditorPass,
                                           MakeEditorPass(kToken, upstream_.port(), Now() - 1s)));
    EXPECT_EQ((co_await Fetch(late)).status, 403u);
    EXPECT_EQ(requests_, 0);

    http::RequestHead right = Request("GET", "/");
    right.headers.Set("e2b-traffic-access-token", std::string(kToken));
    EXPECT_EQ((co_await Fetch(right)).status, 200u);

    std::string pass = MakeEditorPass(kToken, upstream_.port(), Now() + 60s);
    Seen sent_on = co_await Fetch(Request("GET", fmt::format("/?{}={}", kEditorPass, pass)));
    EXPECT_EQ(sent_on.status, 303u);
    EXPECT_EQ(requests_, 1);
    std::string cookie(sent_on.headers.Value("Set-Cookie"));
    http::RequestHead later = Request("GET", "/");
    later.headers.Set("Cookie", "theme=dark; " + cookie.substr(0, cookie.find(';')));
    EXPECT_EQ((co_await Fetch(later)).status, 200u);
    EXPECT_EQ(last_request_.headers.Value("Cookie"), "theme=dark");
  });
}

TEST_F(GatewayTest, APausedSandboxIsNotWokenThroughItsEditorsPort) {
  directory_.AddSleeper("isleep").traffic_token = kToken;
  options_.editor_port = upstream_.port();
  Run([this]() -> Task<void> {
    http::RequestHead request = Request("GET", "/");
    request.headers.Set("E2b-Sandbox-Id", "isleep");
    EXPECT_EQ((co_await Fetch(request)).status, 403u);
    EXPECT_EQ(directory_.wakes, 0);
    request.headers.Set("e2b-traffic-access-token", std::string(kToken));
    EXPECT_EQ((co_await Fetch(request)).status, 200u);
    EXPECT_EQ(directory_.wakes, 1);
  });
}

}  // namespace
}  // namespace caisson::gateway
