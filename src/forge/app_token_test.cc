#include "forge/app_token.h"

#include <gtest/gtest.h>

#include "forge/transport.h"

namespace caisson::forge {
namespace {

using namespace std::chrono_literals;

TEST(AppToken, RefusesWhatIsNoKey) {
  for (const char* key :
       {"", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"})
    EXPECT_EQ(MakeAppClaim(key, "1", Now()).error().code(), Code::kInvalidArgument) << key;
}

TEST(AppToken, IsRenewedFiveMinutesBeforeItsEnd) {
  auto token = ReadAppToken(R"({"token":"ghs_x","expires_at":"2026-11-15T10:00:00Z"})");
  ASSERT_TRUE(token);
  Time end = ParseTime("2026-11-15T10:00:00Z").value();
  EXPECT_TRUE(token->Fresh(end - 301s));
  EXPECT_FALSE(token->Fresh(end - 300s));
  EXPECT_FALSE(token->Fresh(end));
  EXPECT_FALSE(AppToken().Fresh(end));
}

TEST(AppToken, RefusesAnotherAnswer) {
  for (const char* body : {"", "[]", "{}", R"({"token":"x"})", R"({"token":"x","expires_at":"y"})",
                           R"({"token":1,"expires_at":"2026-11-15T10:00:00Z"})"})
    EXPECT_FALSE(ReadAppToken(body)) << body;
}

TEST(Endpoint, KnowsGitHubAndEnterprise) {
  Endpoint endpoint = ParseEndpoint("https://api.github.com").value();
  EXPECT_TRUE(endpoint.tls);
  EXPECT_EQ(endpoint.host_port, "api.github.com:443");
  EXPECT_EQ(endpoint.prefix, "");
  endpoint = ParseEndpoint("https://git.example.com:8443/api/v3/").value();
  EXPECT_EQ(endpoint.host_port, "git.example.com:8443");
  EXPECT_EQ(endpoint.host, "git.example.com:8443");
  EXPECT_EQ(endpoint.prefix, "/api/v3");
  endpoint = ParseEndpoint("http://[::1]").value();
  EXPECT_FALSE(endpoint.tls);
  EXPECT_EQ(endpoint.host_port, "[::1]:80");
  for (const char* url : {"", "api.github.com", "ftp://x", "https://", "https:///x",
                          "https://user:password@host", "https://host/?a=b"})
    EXPECT_FALSE(ParseEndpoint(url)) << url;
}

}  // namespace
}  // namespace caisson::forge
