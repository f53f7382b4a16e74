// The daemon around its services: who may ask, /init, /envs, /metrics, what is not there.
#include "base/encoding.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using DaemonTest = Fixture;
using testing::HasSubstr;

class SecuredTest : public Unbooted {
 protected:
  SecuredTest() { settings.access_token = "token-one"; }
  void SetUp() override { Boot(); }
  const http::Headers token{{"X-Access-Token", "token-one"}};
};

constexpr char kUnauthorized[] =
    R"({"code":401,"message":"unauthorized access, please provide a valid access token or method )"
    R"(signing if supported"})";

TEST_F(DaemonTest, IsHealthy) {
  Reply reply = Http("GET", "/health");
  EXPECT_EQ(reply.status, 204u);
  EXPECT_EQ(reply.headers.Value("Cache-Control"), "no-store");
  EXPECT_EQ(reply.body, "");
}

TEST_F(DaemonTest, UnknownPathsAndMethods) {
  EXPECT_EQ(Http("GET", "/nothing").status, 404u);
  EXPECT_EQ(Http("GET", "/nothing").body, "404 page not found\n");
  EXPECT_EQ(Unary("process.Process/Nothing", {}).status, 404u);
  EXPECT_EQ(Http("GET", "/process.Process/List").status, 405u);
  EXPECT_EQ(Http("DELETE", "/files").status, 405u);
  EXPECT_EQ(Http("POST", "/process.Process/List", {{"Content-Type", "text/plain"}}, "{}").status,
            415u);
}

TEST_F(DaemonTest, HostileRequestsAreRefused) {
  http::Headers type{{"Content-Type", "application/json"}};
  std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(Http("POST", "/process.Process/List", type, deep).status, 400u);
  EXPECT_EQ(Http("POST", "/process.Process/List", type, "{").status, 400u);
  EXPECT_EQ(Http("POST", "/process.Process/List", type, "[]").status, 400u);
  EXPECT_EQ(Http("POST", "/process.Process/List", type, "").status, 200u);
  std::string huge = "{\"path\":\"" + std::string(5 << 20, 'x') + "\"}";
  EXPECT_EQ(Http("POST", "/filesystem.Filesystem/Stat", type, huge).status, 429u);
  EXPECT_EQ(Http("GET", "/health").status, 204u);
}

TEST_F(SecuredTest, PagesOfAnyOriginMayAskIfTheyHaveTheToken) {
  Reply preflight = Http("OPTIONS", "/process.Process/Start",
                         {{"Origin", "http://page"},
                          {"Access-Control-Request-Method", "POST"},
                          {"Access-Control-Request-Headers", "x-access-token,content-type"}});
  EXPECT_EQ(preflight.status, 204u);
  EXPECT_EQ(preflight.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(preflight.headers.Value("Access-Control-Allow-Headers"), "x-access-token,content-type");
  http::Headers headers = token;
  headers.Add("Origin", "http://page");
  Reply reply = Unary("process.Process/List", {}, headers);
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(Bash("echo hi", headers).out, "hi\n");
  Reply refused = Http("GET", "/envs", {{"Origin", "http://page"}});
  EXPECT_EQ(refused.status, 401u);
  EXPECT_EQ(refused.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_FALSE(Http("GET", "/health").headers.Has("Access-Control-Allow-Origin"));
}

TEST_F(SecuredTest, EverythingButHealthNeedsTheToken) {
  EXPECT_EQ(Http("GET", "/health").status, 204u);
  for (auto [method, path] : {std::pair("GET", "/envs"),
                              {"GET", "/metrics"},
                              {"GET", "/nothing"},
                              {"POST", "/files/compose"},
                              {"POST", "/process.Process/List"}}) {
    Reply reply = Http(method, path);
    EXPECT_EQ(reply.status, 401u) << path;
    EXPECT_EQ(reply.body, kUnauthorized);
    EXPECT_EQ(reply.headers.Value("Content-Type"), "application/json; charset=utf-8");
  }
  EXPECT_EQ(Http("GET", "/envs", {{"X-Access-Token", "wrong"}}).status, 401u);
  EXPECT_EQ(Http("GET", "/envs", token).status, 200u);
  EXPECT_EQ(Unary("process.Process/List", {}, token).status, 200u);
}

TEST_F(SecuredTest, InitNeedsTheTokenAndChangesSettings) {
  auto init = [&](json::object body, http::Headers headers = {}) {
    return Http("POST", "/init", std::move(headers), json::serialize(body)).status;
  };
  EXPECT_EQ(init({}), 401u);
  EXPECT_EQ(init({{"accessToken", "other"}}), 401u);
  EXPECT_EQ(init({{"accessToken", "token-one"},
                  {"envVars", {{"NEW", "1"}}},
                  {"timestamp", "2026-01-02T00:00:00Z"}}),
            204u);
  EXPECT_EQ(Http("GET", "/envs", token).Json().at("NEW").as_string(), "1");
  // An older request that arrives late changes nothing.
  EXPECT_EQ(init({{"accessToken", "token-one"},
                  {"envVars", {{"OLD", "1"}}},
                  {"timestamp", "2026-01-01T00:00:00Z"}}),
            204u);
  EXPECT_FALSE(Http("GET", "/envs", token).Json().as_object().contains("OLD"));
  EXPECT_EQ(init({{"accessToken", "token-two"}, {"defaultWorkdir", "/usr"}}, token), 204u);
  EXPECT_EQ(Http("GET", "/envs", token).status, 401u);
  EXPECT_EQ(Bash("pwd", {{"X-Access-Token", "token-two"}}).out, "/usr\n");
  EXPECT_EQ(init({{"nonsense", json::array()}}, {{"X-Access-Token", "token-two"}}), 204u);
  settings.access_token = "token-two";
}

TEST_F(SecuredTest, InitMakesAnotherSandboxOfIt) {
  json::object body{{"sandboxId", "iother"},
                    {"accessToken", "token-two"},
                    {"envVars", {{"NEW", "1"}}},
                    {"timestamp", "2026-01-02T00:00:00Z"},
                    {"resetIdentity", true}};
  auto init = [&](http::Headers headers) {
    return Http("POST", "/init", std::move(headers), json::serialize(body)).status;
  };
  EXPECT_EQ(init({{"X-Access-Token", "wrong"}}), 401u);
  EXPECT_EQ(Http("GET", "/envs", token).Json().at("E2B_SANDBOX_ID").as_string(), "itestsandbox");
  EXPECT_EQ(init(token), 204u);
  // The old token is worth nothing any more, and the same request again changes nothing.
  EXPECT_EQ(Http("GET", "/envs", token).status, 401u);
  EXPECT_EQ(init(token), 204u);
  http::Headers next{{"X-Access-Token", "token-two"}};
  EXPECT_EQ(Bash("echo $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $NEW", next).out, "iother base 1\n");
  // A new id counts even if the clock was set back in between.
  body["sandboxId"] = "ithird";
  body["timestamp"] = "2025-01-01T00:00:00Z";
  EXPECT_EQ(init(next), 204u);
  EXPECT_EQ(Http("GET", "/envs", next).Json().at("E2B_SANDBOX_ID").as_string(), "ithird");
  // All or nothing.
  body["sandboxId"] = "ifourth";
  body["envVars"] = 7;
  EXPECT_EQ(init(next), 400u);
  EXPECT_EQ(Http("GET", "/envs", next).Json().at("E2B_SANDBOX_ID").as_string(), "ithird");
  settings.access_token = "token-two";
}

// The request id that follows `id` in its row (splitmix64 undone, one step, done again).
std::string NextRequestId(std::string_view id) {
  uint64_t z = std::stoull(std::string(id), nullptr, 16);
  z = (z ^ z >> 31 ^ z >> 62) * 0x319642b2d24d8ec3;
  z = (z ^ z >> 27 ^ z >> 54) * 0x96de1b173f119089;
  z = (z ^ z >> 30 ^ z >> 60) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return fmt::format("{:016x}", z ^ (z >> 31));
}

TEST_F(DaemonTest, ANewIdentityDoesNotContinueTheRequestIdsOfTheOldOne) {
  auto id = [](const Reply& reply) { return std::string(reply.headers.Value("X-Request-Id")); };
  std::string first = id(Http("GET", "/health"));
  std::string second = id(Http("POST", "/init", {}, R"({"resetIdentity":true})"));
  EXPECT_EQ(second, NextRequestId(first));  // the copy and the original still say the same
  EXPECT_NE(id(Http("GET", "/health")), NextRequestId(second));
}

TEST_F(DaemonTest, EnvsAreThoseOfTheSandbox) {
  json::value envs = Http("GET", "/envs").Json();
  EXPECT_EQ(envs.at("E2B_SANDBOX").as_string(), "true");
  EXPECT_EQ(envs.at("E2B_SANDBOX_ID").as_string(), "itestsandbox");
  EXPECT_EQ(envs.at("E2B_TEMPLATE_ID").as_string(), "base");
}

TEST_F(DaemonTest, MetricsAreNumbersOfThisMachine) {
  Http("GET", "/metrics");
  Bash("for i in $(seq 1 20000); do :; done");
  json::object metrics = Http("GET", "/metrics").Json().as_object();
  auto number = [&](std::string_view name) { return metrics.at(name).to_number<double>(); };
  EXPECT_NEAR(number("ts"), static_cast<double>(time(nullptr)), 60);
  EXPECT_GE(number("cpu_count"), 1);
  EXPECT_GE(number("cpu_used_pct"), 0);
  EXPECT_LE(number("cpu_used_pct"), 100);
  EXPECT_GT(number("mem_used"), 1 << 20);
  EXPECT_GT(number("mem_total"), number("mem_used"));
  EXPECT_EQ(number("mem_total_mib"), std::floor(number("mem_total") / (1 << 20)));
  EXPECT_GT(number("disk_total"), number("disk_used"));
  EXPECT_TRUE(metrics.contains("mem_cache"));
}

TEST(SettingsText, IsReadAndChecked) {
  auto settings = ParseSettings(
      R"({"sandboxId":"i1","templateId":"t","accessToken":"a","envVars":{"A":"1"},)"
      R"("defaultUser":"root","defaultWorkdir":"/w","port":5,"limits":{"max_processes":7}})");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->sandbox_id, "i1");
  EXPECT_EQ(settings->env_vars.at("A"), "1");
  EXPECT_EQ(settings->default_user, "root");
  EXPECT_EQ(settings->port, 5);
  EXPECT_EQ(settings->limits.max_processes, 7);
  auto defaults = ParseSettings("{}");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->default_user, "user");
  EXPECT_EQ(defaults->port, 49983);
  EXPECT_EQ(defaults->access_token, "");
  EXPECT_FALSE(ParseSettings("[]"));
  EXPECT_FALSE(ParseSettings(R"({"port":70000})"));
  EXPECT_FALSE(ParseSettings(R"({"limits":{"max_nothing":1}})"));
}

TEST(AccountFiles, AreParsed) {
  Accounts accounts = Accounts::Parse(
      "root:x:0:0:root:/root:/bin/bash\nbroken line\nuser:x:1000:1000::/home/user:/bin/sh\n",
      "root:x:0:\nuser:x:1000:\nsudo:x:27:user,other\ndocker:x:999:other\n");
  const User* user = accounts.Find("user");
  ASSERT_NE(user, nullptr);
  EXPECT_EQ(user->uid, 1000u);
  EXPECT_EQ(user->home, "/home/user");
  EXPECT_THAT(accounts.GroupsOf(*user), testing::ElementsAre(1000, 27));
  EXPECT_EQ(accounts.Find("nobody"), nullptr);
  EXPECT_EQ(accounts.UserName(0), "root");
  EXPECT_EQ(accounts.UserName(4242), "4242");
  EXPECT_EQ(accounts.GroupName(999), "docker");
}

}  // namespace
}  // namespace caisson::envd
