#include "gateway/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/signature.h"

namespace caisson::gateway {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kBrowser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130";

TEST(Problem, ProgramsGetJson) {
  http::RequestHead request{.headers = {{"User-Agent", "curl/8"}}};
  http::Response response = Render(SandboxNotFound("iabc"), request);
  EXPECT_EQ(response.status, 502u);
  EXPECT_EQ(response.headers.Value("Content-Type"), "application/json; charset=utf-8");
  EXPECT_EQ(response.body,
            R"({"sandboxId":"iabc","message":"The sandbox was not found","code":502})");
  response = Render(PortClosed("iabc", 3000), request);
  EXPECT_EQ(response.body, R"({"sandboxId":"iabc","message":"The sandbox is running but port is )"
                           R"(not open","port":3000,"code":502})");
  response = Render(NoTrafficToken("iabc", false), request);
  EXPECT_EQ(response.status, 403u);
  EXPECT_THAT(response.body, HasSubstr("Token header 'e2b-traffic-access-token' is missing"));
  response = Render(NoTrafficToken("iabc", true), request);
  EXPECT_THAT(response.body, HasSubstr("token in header 'e2b-traffic-access-token' is invalid"));
}

TEST(Problem, PeopleGetAPage) {
  http::RequestHead request{.headers = {{"User-Agent", kBrowser},
                                        {"Accept", "text/html"},
                                        {"Sec-Fetch-Mode", "navigate"}}};
  http::Response closed = Render(PortClosed("iabc", 3000), request);
  EXPECT_THAT(closed.headers.Value("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(closed.body, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(closed.body, HasSubstr("<code>iabc</code>, port <code>3000</code>"));
  EXPECT_THAT(closed.body, HasSubstr("<title>Closed Port Error</title>"));
  EXPECT_THAT(closed.body, StartsWith("<html"));
  EXPECT_THAT(closed.body, EndsWith("</html>"));
  http::Response gone = Render(SandboxNotFound("iabc"), request);
  EXPECT_THAT(gone.body, Not(HasSubstr("http-equiv=\"refresh\"")));
  EXPECT_TRUE(gone.headers.Has("Content-Security-Policy"));
}

TEST(Problem, ScriptsInAPageGetJson) {
  auto wants_page = [](http::Headers headers) {
    headers.Add("User-Agent", kBrowser);
    return WantsPage({.headers = std::move(headers)});
  };
  EXPECT_TRUE(wants_page({}));
  EXPECT_FALSE(wants_page({{"Accept", "application/json"}}));
  EXPECT_FALSE(wants_page({{"Sec-Fetch-Mode", "cors"}}));
  EXPECT_FALSE(wants_page({{"Sec-Fetch-Mode", "no-cors"}}));
  EXPECT_FALSE(wants_page({{"X-Requested-With", "XMLHttpRequest"}}));
  EXPECT_TRUE(wants_page({{"Sec-Fetch-Mode", "navigate"}, {"X-Requested-With", "XMLHttpRequest"}}));
  EXPECT_FALSE(WantsPage({.headers = {{"User-Agent", "node"}, {"Sec-Fetch-Mode", "navigate"}}}));
}

TEST(Problem, APreflightIsAnsweredWell) {
  http::RequestHead request{.method = "OPTIONS",
                            .headers = {{"Origin", "https://app.example"},
                                        {"Access-Control-Request-Method", "GET"},
                                        {"Access-Control-Request-Headers", "x-thing"}}};
  http::Response response = Render(PortClosed("iabc", 3000), request);
  EXPECT_EQ(response.status, 204u);
  EXPECT_EQ(response.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(response.headers.Value("Access-Control-Allow-Headers"), "x-thing");
}

TEST(Signature, IsTheOneSdksMake) {
  http::RequestHead request{.method = "GET",
                            .target =
                                "/files?path=hello.txt&username=user"
                                "&signature=v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"};
  SignedFields fields = SignedFields::From(request);
  EXPECT_TRUE(fields.signer().Made(fields.signature, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"));
  EXPECT_FALSE(fields.signer().Made(fields.signature, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e1"));
  request.method = "POST";
  auto written = SignedFields::From(request).signer();
  EXPECT_FALSE(written.Made(fields.signature, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"));
}

TEST(Signature, CoversTheExpiration) {
  SignedFields fields{.path = "a b", .operation = "write", .expiration = "1700000000"};
  fields.signature = fields.signer().Sign("token");
  EXPECT_TRUE(fields.signer().Made(fields.signature, "token"));
  fields.expiration = "1800000000";
  EXPECT_FALSE(fields.signer().Made(fields.signature, "token"));
}

TEST(Signature, IsTriedWithAllTokensOnlyIfThatIsCheap) {
  SignedFields fields{.path = std::string(60'000, 'a'), .operation = "read"};
  fields.signature = fields.signer().Sign("token");
  EXPECT_TRUE(fields.MayBeAnybodys());  // what stands before the token is hashed once
  fields.expiration = "1700000000";
  EXPECT_TRUE(fields.MayBeAnybodys());
  fields.expiration = std::string(21, '1');
  EXPECT_FALSE(fields.MayBeAnybodys());
  fields.expiration.reset();
  fields.signature.pop_back();
  EXPECT_FALSE(fields.MayBeAnybodys());
}

}  // namespace
}  // namespace caisson::gateway
