#include "gateway/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/text.h"
#include "gateway/signature.h"

namespace caisson::gateway {
namespace {

const std::string kServerKey = "e2b_0123456789abcdef0123456789abcdef01234567";

http::RequestHead Request(http::Headers headers) {
  return {.method = "GET", .target = "/p?q=1", .headers = std::move(headers)};
}

TEST(ForSandbox, DropsWhatConcernsOnlyThisConnection) {
  auto head = ForSandbox(Request({{"Host", "h"},
                                  {"Connection", "keep-alive, X-Private"},
                                  {"Connection", "X-Other"},
                                  {"X-Private", "1"},
                                  {"X-Other", "1"},
                                  {"Keep-Alive", "timeout=5"},
                                  {"Transfer-Encoding", "chunked"},
                                  {"TE", "trailers"},
                                  {"Trailer", "T"},
                                  {"Proxy-Authorization", "Basic x"},
                                  {"Upgrade", "h2c"},
                                  {"Expect", "100-continue"},
                                  {"Accept", "*/*"}}),
                         {.peer_address = "192.0.2.1", .port = 80});
  std::vector<std::string> names;
  for (const auto& [name, value] : head.headers) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"Host", "Accept", "X-Forwarded-For", "X-Forwarded-Proto"}));
  EXPECT_EQ(head.target, "/p?q=1");
  EXPECT_EQ(head.headers.Value("Host"), "h");
}

TEST(ForSandbox, KeepsTheServersKeysFromStrangers) {
  auto head = ForSandbox(Request({{"X-API-KEY", kServerKey},
                                  {"Authorization", "Bearer " + kServerKey},
                                  {"E2b-Traffic-Access-Token", "secret"}}),
                         {.port = 80});
  EXPECT_FALSE(head.headers.Has("X-API-KEY"));
  EXPECT_FALSE(head.headers.Has("Authorization"));
  EXPECT_FALSE(head.headers.Has("E2b-Traffic-Access-Token"));
  head = ForSandbox(Request({{"X-API-KEY", "other"}, {"x-api-key", kServerKey}}), {});
  EXPECT_FALSE(head.headers.Has("X-API-KEY"));
}

TEST(ForSandbox, KeepsTheBoardsCookiesFromStrangers) {
  auto head = ForSandbox(
      Request({{"Cookie", "theme=dark; caisson_access=secret; caisson_csrf=x"}, {"cookie", "a=b"}}),
      {.port = 80});
  EXPECT_EQ(head.headers.Value("Cookie"), "theme=dark; a=b");
  head = ForSandbox(Request({{"Cookie", "caisson_access=secret"}}), {.port = 80});
  EXPECT_FALSE(head.headers.Has("Cookie"));
}

constexpr std::string_view kToken = "X-Access-Token";

Passage Secured(bool to_envd = true) {
  return {.port = 80, .to_envd = to_envd, .access_token = "outside", .inside_token = "inside"};
}

TEST(ForSandbox, ExchangesTheAccessToken) {
  for (bool to_envd : {true, false}) {
    auto token = [&](std::string value, std::string name = "X-Access-Token") {
      return ForSandbox(Request({{name, value}}), Secured(to_envd)).headers.Value(kToken);
    };
    EXPECT_EQ(token("outside", "x-access-token"), "inside");
    // What is good inside is not good outside.
    EXPECT_EQ(token("inside"), "invalid");
    // At envd it may be another sandbox's, by mistake; elsewhere it is an application's own.
    EXPECT_EQ(token("a"), to_envd ? "invalid" : "a");
    // Also behind another value.
    auto head = ForSandbox(Request({{"X-Access-Token", "a"}, {"X-Access-Token", "outside"}}),
                           Secured(to_envd));
    EXPECT_EQ(head.headers.Value(kToken), "inside");
    EXPECT_EQ(
        std::count_if(head.headers.begin(), head.headers.end(),
                      [](const auto& field) { return EqualsIgnoreCase(field.first, kToken); }),
        1);
    EXPECT_FALSE(ForSandbox(Request({}), Secured(to_envd)).headers.Has(kToken));
    // An envd without a token needs none.
    auto open = ForSandbox(Request({{"X-Access-Token", "a"}}), {.port = 80, .to_envd = to_envd});
    EXPECT_EQ(open.headers.Has(kToken), !to_envd);
  }
}

TEST(ForSandbox, ExchangesSignaturesOfFiles) {
  auto target = [](std::string path, std::string signature) {
    auto request = Request({});
    request.target =
        fmt::format("{}?path=a%20b&signature={}&username=u", path, PercentEncode(signature));
    return ForSandbox(request, Secured()).target;
  };
  SignedFields fields{.path = "a b", .operation = "read", .user = "u"};
  std::string outside = fields.signer().Sign("outside"), inside = fields.signer().Sign("inside");
  EXPECT_EQ(target("/files", outside),
            fmt::format("/files?path=a%20b&signature={}&username=u", PercentEncode(inside)));
  EXPECT_EQ(target("/files", inside), "/files?path=a%20b&signature=invalid&username=u");
  // Those of applications, or false ones, are not ours to change.
  fields.path = "another";
  for (const std::string& other : {std::string("abc"), fields.signer().Sign("outside")})
    EXPECT_THAT(target("/files", other), testing::HasSubstr(PercentEncode(other)));
  EXPECT_THAT(target("/other", outside), testing::HasSubstr(PercentEncode(outside)));
}

TEST(ForSandbox, KeepsKeysOfAnotherFormFromStrangers) {
  Passage passage{.port = 80, .is_our_key = [](std::string_view text) { return text == "ours"; }};
  for (const char* value : {"ours", "Bearer ours", " bearer  ours "})
    EXPECT_FALSE(
        ForSandbox(Request({{"Authorization", value}}), passage).headers.Has("Authorization"))
        << value;
  EXPECT_TRUE(
      ForSandbox(Request({{"Authorization", "theirs"}}), passage).headers.Has("Authorization"));
}

TEST(ForSandbox, PassesAnApplicationsOwnKeys) {
  auto head = ForSandbox(
      Request(
          {{"X-API-KEY", "mine"}, {"Authorization", "Basic dXNlcjo="}, {"X-Access-Token", "envd"}}),
      {.port = 80});
  EXPECT_EQ(head.headers.Value("X-API-KEY"), "mine");
  EXPECT_EQ(head.headers.Value("Authorization"), "Basic dXNlcjo=");
  EXPECT_EQ(head.headers.Value("X-Access-Token"), "envd");
}

TEST(ForSandbox, TellsWhereTheRequestComesFrom) {
  auto first = ForSandbox(Request({}), {.peer_address = "192.0.2.1", .tls = true, .port = 80});
  EXPECT_EQ(first.headers.Value("X-Forwarded-For"), "192.0.2.1");
  EXPECT_EQ(first.headers.Value("X-Forwarded-Proto"), "https");
  auto second =
      ForSandbox(Request({{"X-Forwarded-For", "198.51.100.7"}, {"X-Forwarded-Proto", "https"}}),
                 {.peer_address = "192.0.2.1", .port = 80});
  EXPECT_EQ(second.headers.Value("X-Forwarded-For"), "198.51.100.7, 192.0.2.1");
  EXPECT_EQ(second.headers.Value("X-Forwarded-Proto"), "https");
}

TEST(ForSandbox, MasksTheHost) {
  auto head = ForSandbox(Request({{"Host", "3000-iabc.d:8000"}}),
                         {.mask_request_host = "localhost:${PORT}", .port = 3000});
  EXPECT_EQ(head.headers.Value("Host"), "localhost:3000");
  EXPECT_EQ(head.headers.Value("X-Forwarded-Host"), "3000-iabc.d:8000");
}

TEST(ForSandbox, KeepsAnUpgrade) {
  auto head = ForSandbox(Request({{"Connection", "keep-alive, Upgrade"},
                                  {"Upgrade", "websocket"},
                                  {"Sec-WebSocket-Key", "k"}}),
                         {.port = 80});
  EXPECT_EQ(head.headers.Value("Connection"), "Upgrade");
  EXPECT_EQ(head.headers.Value("Upgrade"), "websocket");
  EXPECT_EQ(head.headers.Value("Sec-WebSocket-Key"), "k");
}

TEST(ForClient, DropsHopByHop) {
  http::Headers headers{{"Connection", "close"}, {"Keep-Alive", "x"}, {"Content-Type", "t"}};
  ForClient(headers, /*keep_upgrade=*/false);
  EXPECT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers.Value("Content-Type"), "t");
}

TEST(Cors, PreflightAllowsWhatIsAsked) {
  http::RequestHead request{.method = "OPTIONS",
                            .headers = {{"Origin", "https://a.example"},
                                        {"Access-Control-Request-Method", "POST"},
                                        {"Access-Control-Request-Headers", "authorization, x-y"}}};
  ASSERT_TRUE(IsPreflight(request));
  http::Response response = AnswerPreflight(request);
  EXPECT_EQ(response.status, 204u);
  EXPECT_EQ(response.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(response.headers.Value("Access-Control-Allow-Headers"), "authorization, x-y");
  request.headers.Remove("Origin");
  EXPECT_FALSE(IsPreflight(request));
}

TEST(Cors, AnAnswersOwnPolicyStays) {
  http::Headers headers{{"Access-Control-Allow-Origin", "https://only.example"}};
  AllowAnyOrigin(headers);
  EXPECT_EQ(headers.Value("Access-Control-Allow-Origin"), "https://only.example");
}

}  // namespace
}  // namespace caisson::gateway
