// The routes as a client sees them: statuses, headers and bodies.
#include "e2b/api.h"

#include <boost/json.hpp>

#include "e2b/fake_exchange.h"
#include "sandbox/manager_fixture.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

class ApiTest : public sandbox::ManagerFixture {
 protected:
  ApiTest() {
    auto opened = account::KeyRing::Open(dir_.path(), kKey);
    keys_ = std::move(opened.value());
  }
  ~ApiTest() override {
    if (audit_) testing::Await(io_, audit_->Stop());
    if (accounts_) testing::Await(io_, accounts_->Stop());
  }
  void StartApi() {
    StartServer();
    accounts_ = std::make_unique<account::Accounts>(io_.get_executor(), *store_, keys_,
                                                    "the server's secret", config_);
    ASSERT_TRUE(testing::Await(io_, accounts_->Start()));
    audit_ = std::make_unique<account::AuditTrail>(io_.get_executor(), *store_);
    api_ = std::make_unique<Api>(*manager_, *accounts_, *audit_, templates_, config_, 8000);
    api_->AddRoutes(router_);
  }

  http::Response Ask(const std::string& method, const std::string& target,
                     const std::string& body = "", http::Headers headers = {{"X-API-KEY", kKey}}) {
    auto match = router_.Find(method, target.substr(0, target.find('?')));
    EXPECT_TRUE(match.handler) << method << " " << target;
    if (!match.handler) return {};
    FakeExchange exchange(io_.get_executor(), method, target, body, std::move(headers));
    testing::Await(io_, (*match.handler)(exchange, match.params));
    EXPECT_TRUE(exchange.answer);
    return std::move(exchange.answer).value_or(http::Response{});
  }
  // The body of an answer with this status.
  json::value Json(const http::Response& response, unsigned status) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(response.headers.Value("Access-Control-Allow-Origin"), "*");
    boost::system::error_code ec;
    json::value value = json::parse(response.body, ec);
    EXPECT_FALSE(ec) << response.body;
    return value;
  }
  // Checks E2B's shape of an error and returns its message.
  std::string Refusal(const http::Response& response, unsigned status) {
    json::value body = Json(response, status);
    if (!body.is_object() || !body.get_object().contains("message")) return "no message";
    EXPECT_EQ(body.at("code"), status);
    return std::string(body.at("message").as_string());
  }
  std::string MakeOne(const std::string& body = R"({"templateID":"base"})") {
    json::value made = Json(Ask("POST", "/v2/sandboxes", body), 201);
    return std::string(made.at("sandboxID").as_string());
  }

  static constexpr const char* kKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  account::KeyRing keys_;
  std::unique_ptr<account::Accounts> accounts_;
  std::unique_ptr<account::AuditTrail> audit_;
  http::Router router_;
  std::unique_ptr<Api> api_;
};

TEST_F(ApiTest, ASandboxFromCreateToKill) {
  StartApi();
  json::value made = Json(Ask("POST", "/v2/sandboxes", R"({"templateID":"base"})"), 201);
  EXPECT_EQ(made.at("templateID"), "base-id");
  EXPECT_EQ(made.at("alias"), "base");
  EXPECT_EQ(made.at("domain"), "caisson.localhost:8000");
  EXPECT_EQ(made.at("envdVersion"), "0.6.13");
  EXPECT_TRUE(made.as_object().contains("clientID"));
  std::string id(made.at("sandboxID").as_string());

  json::value detail = Json(Ask("GET", "/sandboxes/" + id), 200);
  EXPECT_EQ(detail.at("state"), "running");
  EXPECT_EQ(detail.at("envdAccessToken"), made.at("envdAccessToken"));
  EXPECT_EQ(Json(Ask("GET", "/sandboxes/" + id + "-client"), 200).at("sandboxID"), id.c_str());

  http::Response killed = Ask("DELETE", "/sandboxes/" + id);
  EXPECT_EQ(killed.status, 204u);
  EXPECT_EQ(killed.body, "");
  Refusal(Ask("DELETE", "/sandboxes/" + id), 404);
  Refusal(Ask("GET", "/sandboxes/" + id), 404);
}

TEST_F(ApiTest, TheTwoCreatesDifferInDefaultsOnly) {
  StartApi();
  json::value v1 = Json(Ask("POST", "/sandboxes", R"({"templateID":"base"})"), 201);
  EXPECT_FALSE(v1.as_object().contains("envdAccessToken"));
  json::value secured =
      Json(Ask("POST", "/sandboxes", R"({"templateID":"base","secure":true})"), 201);
  EXPECT_TRUE(secured.as_object().contains("envdAccessToken"));
  json::value v2 = Json(Ask("POST", "/v2/sandboxes", R"({"templateID":"base"})"), 201);
  EXPECT_TRUE(v2.as_object().contains("envdAccessToken"));
}

TEST_F(ApiTest, NothingWithoutAKey) {
  StartApi();
  for (http::Headers headers :
       {http::Headers{}, http::Headers{{"X-API-KEY", ""}}, http::Headers{{"X-API-KEY", "wrong"}},
        http::Headers{{"Authorization", "Bearer wrong"}},
        http::Headers{{"Authorization", "Basic eDp5"}}}) {
    Refusal(Ask("POST", "/v2/sandboxes", R"({"templateID":"base"})", headers), 401);
    Refusal(Ask("GET", "/sandboxes/i1", "", headers), 401);
    Refusal(Ask("GET", "/templates", "", headers), 401);
  }
  EXPECT_EQ(engine_.creates, 0);
  Json(Ask("GET", "/v2/sandboxes", "", {{"Authorization", std::string("Bearer ") + kKey}}), 200);
}

TEST_F(ApiTest, ALoginIsAsGoodAsAKey) {
  StartApi();
  auto login = testing::Await(io_, accounts_->LoginByKey(kKey, "127.0.0.1"));
  ASSERT_TRUE(login);
  std::string cookies =
      fmt::format("caisson_access={}; caisson_csrf={}", login->access, login->csrf);
  const std::string body = R"({"templateID":"base"})";
  http::Headers page{{"Cookie", cookies}, {"X-CSRF-Token", login->csrf}};
  std::string id(Json(Ask("POST", "/v2/sandboxes", body, page), 201).at("sandboxID").as_string());
  EXPECT_EQ(Json(Ask("GET", "/v2/sandboxes", "", {{"Cookie", cookies}}), 200).as_array().size(),
            1u);
  Json(Ask("GET", "/sandboxes/" + id), 200);  // the key's user is the same

  // Another page makes the browser send the cookies, but cannot read the token.
  for (http::Headers headers :
       {http::Headers{{"Cookie", cookies}},
        http::Headers{{"Cookie", cookies}, {"X-CSRF-Token", "guess"}},
        http::Headers{{"Cookie", "caisson_csrf=guess; caisson_access=" + login->access},
                      {"X-CSRF-Token", "guess"}},
        http::Headers{{"Cookie", "caisson_access=" + login->access},
                      {"X-CSRF-Token", login->csrf}}}) {
    EXPECT_NE(Refusal(Ask("POST", "/v2/sandboxes", body, headers), 403).find("X-CSRF-Token"),
              std::string::npos);
    Refusal(Ask("DELETE", "/sandboxes/" + id, "", headers), 403);
  }
  Refusal(Ask("GET", "/v2/sandboxes", "", {{"Cookie", "caisson_access=forged"}}), 401);
  // A key that is sent decides.
  Refusal(Ask("GET", "/v2/sandboxes", "", {{"Cookie", cookies}, {"X-API-KEY", "wrong"}}), 401);
  EXPECT_EQ(Ask("DELETE", "/sandboxes/" + id, "", page).status, 204u);
  ASSERT_TRUE(testing::Await(io_, accounts_->Logout(account::Accounts::LoginOf(login->refresh))));
  Refusal(Ask("GET", "/v2/sandboxes", "", page), 401);
}

TEST_F(ApiTest, CreateRefusesWithTheRightStatus) {
  config_.max_sandboxes = 1;
  StartApi();
  auto create = [&](const std::string& body) { return Ask("POST", "/v2/sandboxes", body); };
  EXPECT_EQ(Refusal(create(R"({"templateID":"nope"})"), 404), "template 'nope' not found");
  Refusal(create(""), 400);
  Refusal(create("{not json"), 400);
  Refusal(create(R"({"templateID":"base","timeout":1000000})"), 400);
  Refusal(create(R"({"templateID":"base","autoPauseMemory":false})"), 400);
  Refusal(create(R"({"templateID":"base","network":{"egressProxy":{"address":"x:1"}}})"), 403);
  config_.http_max_body_bytes = 100;
  Refusal(create(std::string(200, ' ')), 413);
  config_.http_max_body_bytes = 1000;
  engine_.create_fails = Error(Code::kInternal, "x");
  EXPECT_EQ(Json(create(R"({"templateID":"base"})"), 500).at("error_code"),
            "sandbox_create_failed");
  engine_.create_fails = Error(Code::kDeadlineExceeded, "x");
  Refusal(create(R"({"templateID":"base"})"), 504);
  engine_.create_fails.reset();
  MakeOne();
  EXPECT_EQ(Json(create(R"({"templateID":"base"})"), 503).at("error_code"),
            "sandbox_capacity_unavailable");
}

TEST_F(ApiTest, AKeyAtItsQuotaIsToldWhenToTryAgain) {
  config_.max_sandboxes_per_key = 1;
  StartApi();
  MakeOne();
  http::Response refused = Ask("POST", "/v2/sandboxes", R"({"templateID":"base"})");
  Refusal(refused, 429);
  EXPECT_EQ(refused.headers.Value("Retry-After"), "1");
}

TEST_F(ApiTest, IdempotencyKeys) {
  StartApi();
  auto create = [&](const std::string& body, const std::string& key) {
    return Ask("POST", "/v2/sandboxes", body, {{"X-API-KEY", kKey}, {"Idempotency-Key", key}});
  };
  std::string body = R"({"templateID":"base"})";
  json::value first = Json(create(body, "abc-1"), 201), second = Json(create(body, "abc-1"), 201);
  EXPECT_EQ(first.at("sandboxID"), second.at("sandboxID"));
  json::value mismatch = Json(create(R"({"templateID":"base","timeout":9})", "abc-1"), 422);
  EXPECT_EQ(mismatch.at("error_code"), "idempotency_request_mismatch");
  EXPECT_EQ(mismatch.at("code"), 422);
  Refusal(create(body, "not a key!"), 400);
  Refusal(create(body, std::string(256, 'a')), 400);
  EXPECT_EQ(engine_.creates, 1);
}

TEST_F(ApiTest, ListsInPages) {
  StartApi();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(MakeOne(R"({"templateID":"base","metadata":{"a":"b"}})"));
  MakeOne();
  std::vector<std::string> seen;
  std::string token;
  do {
    http::Response page = Ask("GET", "/v2/sandboxes?metadata=a%3Db&limit=2&nextToken=" + token);
    EXPECT_EQ(page.headers.Value("X-Total-Running"), "5");
    json::value items = Json(page, 200);
    for (const auto& item : items.as_array()) {
      seen.emplace_back(item.at("sandboxID").as_string());
      EXPECT_FALSE(item.as_object().contains("envdAccessToken"));
    }
    token = page.headers.Value("X-Next-Token");
  } while (!token.empty());
  std::reverse(seen.begin(), seen.end());
  EXPECT_EQ(seen, ids);
  EXPECT_EQ(Json(Ask("GET", "/sandboxes?metadata=a%3Db"), 200).as_array().size(), 5u);
  EXPECT_EQ(Json(Ask("GET", "/sandboxes"), 200).as_array().size(), 6u);
  http::Response paused = Ask("GET", "/v2/sandboxes?state=paused");
  EXPECT_EQ(Json(paused, 200).as_array().size(), 0u);
  EXPECT_FALSE(paused.headers.Has("X-Total-Running"));
  Refusal(Ask("GET", "/v2/sandboxes?limit=0"), 400);
}

TEST_F(ApiTest, ConnectTimeoutAndRefresh) {
  StartApi();
  std::string id = MakeOne(), path = "/sandboxes/" + id;
  auto end = [&] { return std::string(Json(Ask("GET", path), 200).at("endAt").as_string()); };
  std::string before = end();
  json::value connected = Json(Ask("POST", path + "/connect", R"({"timeout":5})"), 200);
  EXPECT_EQ(connected.at("sandboxID"), id.c_str());
  EXPECT_EQ(end(), before);
  Json(Ask("POST", "/v2" + path + "/connect", ""), 200);
  Refusal(Ask("POST", path + "/connect", "{}"), 400);
  Refusal(Ask("POST", path + "/connect", ""), 400);
  Refusal(Ask("POST", "/v2" + path + "/connect", R"({"timeout":1000000})"), 400);
  EXPECT_EQ(Ask("POST", path + "/timeout", R"({"timeout":10})").status, 204u);
  EXPECT_LT(end(), before);
  Refusal(Ask("POST", path + "/timeout", "{}"), 400);
  EXPECT_EQ(Ask("POST", path + "/refreshes", R"({"duration":600})").status, 204u);
  EXPECT_GT(end(), before);
  EXPECT_EQ(Ask("POST", path + "/refreshes", "").status, 204u);
}

TEST_F(ApiTest, UnknownSandboxesAre404EverywhereAndOddIdsAre400) {
  StartApi();
  struct Route {
    const char* method;
    const char* suffix;
    const char* body;
  };
  for (auto [method, suffix, body] : {Route{"GET", "", ""},
                                      {"DELETE", "", ""},
                                      {"POST", "/connect", R"({"timeout":5})"},
                                      {"POST", "/timeout", R"({"timeout":5})"},
                                      {"POST", "/refreshes", ""},
                                      {"POST", "/pause", ""},
                                      {"POST", "/resume", ""},
                                      {"POST", "/snapshots", ""},
                                      {"POST", "/fork", ""},
                                      {"PUT", "/network", "{}"},
                                      {"GET", "/metrics", ""},
                                      {"GET", "/logs", ""}}) {
    Refusal(Ask(method, std::string("/sandboxes/inone") + suffix, body), 404);
    EXPECT_EQ(Refusal(Ask(method, std::string("/sandboxes/a-b-c") + suffix, body), 400),
              "Invalid sandbox ID");
  }
  Refusal(Ask("GET", "/v2/sandboxes/inone/logs"), 404);
  Refusal(Ask("POST", "/v2/sandboxes/inone/connect"), 404);
}

TEST_F(ApiTest, WhatIsNotThereYetSaysSo) {
  StartApi();
  Refusal(Ask("POST", "/v3/templates", "{}"), 501);
  Refusal(Ask("DELETE", "/templates/nope%3Adefault"), 404);
  Refusal(Ask("DELETE", "/templates/base"), 501);
}

TEST_F(ApiTest, PauseResumeAndConnect) {
  StartApi();
  std::string id = MakeOne(), path = "/sandboxes/" + id;
  Refusal(Ask("POST", path + "/resume", R"({"timeout":5})"), 409);
  EXPECT_EQ(Ask("POST", path + "/pause", "").status, 204u);
  Refusal(Ask("POST", path + "/pause", "{}"), 409);
  Refusal(Ask("POST", path + "/pause", R"({"memory":"x"})"), 400);
  json::value detail = Json(Ask("GET", path), 200);
  EXPECT_EQ(detail.at("state"), "paused");
  EXPECT_EQ(Json(Ask("GET", "/v2/sandboxes?state=paused"), 200).as_array().size(), 1u);
  http::Response all = Ask("GET", "/v2/sandboxes");
  EXPECT_EQ(Json(all, 200).as_array().size(), 1u);
  EXPECT_EQ(all.headers.Value("X-Total-Running"), "0");
  EXPECT_EQ(Json(Ask("GET", "/sandboxes"), 200).as_array().size(), 0u);
  Refusal(Ask("POST", path + "/timeout", R"({"timeout":5})"), 404);
  Refusal(Ask("POST", path + "/refreshes", ""), 404);
  Refusal(Ask("POST", path + "/fork", ""), 409);
  Refusal(Ask("POST", path + "/snapshots", ""), 409);

  json::value resumed = Json(Ask("POST", "/v2/sandboxes/" + id + "/connect", ""), 201);
  EXPECT_EQ(resumed.at("envdAccessToken"), detail.at("envdAccessToken"));
  Json(Ask("POST", "/v2/sandboxes/" + id + "/connect", ""), 200);
  EXPECT_EQ(Ask("POST", path + "/pause", R"({"memory":false})").status, 204u);
  EXPECT_EQ(engine_.saved.at(id).tier, engine::Tier::kFiles);
  Json(Ask("POST", path + "/connect", R"({"timeout":5,"memory":false})"), 201);
  EXPECT_EQ(Ask("POST", path + "/pause", "").status, 204u);
  Json(Ask("POST", path + "/resume", R"({"autoPause":true})"), 201);
  EXPECT_EQ(Json(Ask("GET", path), 200).at("lifecycle").at("onTimeout"), "pause");
  engine_.pause_fails = Error(Code::kUnavailable, "busy");
  Refusal(Ask("POST", path + "/pause", ""), 503);
  engine_.pause_fails.reset();
  EXPECT_EQ(Ask("POST", path + "/pause", "").status, 204u);
  EXPECT_EQ(Ask("DELETE", path).status, 204u);
  Refusal(Ask("POST", path + "/connect", R"({"timeout":5})"), 404);
}

TEST_F(ApiTest, Snapshots) {
  StartApi();
  std::string id = MakeOne(), path = "/sandboxes/" + id + "/snapshots";
  json::value plain = Json(Ask("POST", path, ""), 201);
  EXPECT_EQ(plain.at("names").as_array().size(), 0u);
  std::string plain_id(plain.at("snapshotID").as_string());
  EXPECT_TRUE(plain_id.ends_with(":default"));
  json::value named = Json(Ask("POST", path, R"({"name":"team/mine"})"), 201);
  EXPECT_EQ(named, json::parse(R"({"snapshotID":"team/mine:default",
                                   "names":["team/mine:default"]})"));
  Refusal(Ask("POST", path, R"({"name":"a b"})"), 400);
  json::value files = Json(Ask("POST", path, R"({"memory":false})"), 201);
  std::string files_id(files.at("snapshotID").as_string());
  EXPECT_EQ(engine_.saved.at(files_id.substr(0, files_id.find(':'))).tier, engine::Tier::kFiles);
  EXPECT_EQ(Ask("DELETE", "/templates/" + files_id).status, 204u);

  // Sent again with its name as the key it is the same one, without a key a newer one.
  EXPECT_EQ(Json(Ask("POST", path, R"({"name":"team/mine"})",
                     {{"X-API-KEY", kKey}, {"Idempotency-Key", "team/mine"}}),
                 201),
            named);

  EXPECT_EQ(Json(Ask("GET", "/snapshots"), 200), (json::array{named, plain}));
  EXPECT_EQ(Json(Ask("GET", "/snapshots?sandboxID=" + id), 200).as_array().size(), 2u);
  EXPECT_EQ(Json(Ask("GET", "/snapshots?sandboxID=inone"), 200).as_array().size(), 0u);
  EXPECT_EQ(Json(Ask("GET", "/snapshots?name=team%2Fmine"), 200), json::array{named});
  http::Response first = Ask("GET", "/snapshots?limit=1");
  EXPECT_EQ(Json(first, 200), json::array{named});
  http::Response second = Ask(
      "GET", "/snapshots?limit=1&nextToken=" + std::string(first.headers.Value("X-Next-Token")));
  EXPECT_EQ(Json(second, 200), json::array{plain});
  EXPECT_FALSE(second.headers.Has("X-Next-Token"));
  Refusal(Ask("GET", "/snapshots?limit=0"), 400);
  Refusal(Ask("GET", "/snapshots?nextToken=x"), 400);

  MakeOne(json::serialize(json::object{{"templateID", plain_id}}));
  MakeOne(R"({"templateID":"team/mine"})");
  EXPECT_EQ(Ask("DELETE", "/templates/team%2Fmine%3Adefault").status, 204u);
  Refusal(Ask("DELETE", "/templates/team/mine:default"), 404);
  Json(Ask("POST", path, R"({"name":"team/mine"})"), 201);
  EXPECT_EQ(Ask("DELETE", "/templates/team/mine:default").status, 204u);
  EXPECT_EQ(Ask("DELETE", "/templates/" + plain_id).status, 204u);
  EXPECT_EQ(Json(Ask("GET", "/snapshots"), 200).as_array().size(), 0u);
}

TEST_F(ApiTest, Forks) {
  StartApi();
  std::string path = "/sandboxes/" + MakeOne() + "/fork";
  json::value one = Json(Ask("POST", path, ""), 201);
  ASSERT_EQ(one.as_array().size(), 1u);
  EXPECT_TRUE(one.at(0).at("sandbox").as_object().contains("sandboxID"));
  engine_.create_fails_from = 3;
  json::value two = Json(Ask("POST", path, R"({"count":2,"timeout":60})"), 201);
  ASSERT_EQ(two.as_array().size(), 2u);
  EXPECT_EQ(two.at(0).as_object().size(), 1u);
  EXPECT_TRUE(two.at(0).as_object().contains("sandbox"));
  EXPECT_EQ(two.at(1).at("error").at("code"), 503);
  EXPECT_TRUE(two.at(1).at("error").as_object().contains("message"));
  for (const char* bad : {R"({"count":0})", R"({"count":101})", R"({"timeout":0})",
                          R"({"count":"1"})", R"({"timeout":1000000})"})
    Refusal(Ask("POST", path, bad), 400);
}

TEST_F(ApiTest, NetworkUpdates) {
  StartApi();
  std::string id = MakeOne(R"({"templateID":"base","network":{"allowPublicTraffic":false}})");
  std::string path = "/sandboxes/" + id;
  EXPECT_EQ(Ask("PUT", path + "/network", R"({"denyOut":["10.0.0.0/8"]})").status, 204u);
  EXPECT_EQ(Json(Ask("GET", path), 200).at("network"),
            json::parse(R"({"allowPublicTraffic":false,"denyOut":["10.0.0.0/8"]})"));
  EXPECT_EQ(Ask("PUT", path + "/network", "{}").status, 204u);
  EXPECT_EQ(Json(Ask("GET", path), 200).at("network"),
            json::parse(R"({"allowPublicTraffic":false})"));
  Refusal(Ask("PUT", path + "/network", R"({"denyOut":["nope"]})"), 400);
  Refusal(Ask("PUT", path + "/network", R"({"allowOut":["a.example"]})"), 400);
  EXPECT_EQ(Ask("PUT", path + "/network", R"({"allow_internet_access":false})").status, 204u);
  EXPECT_EQ(Json(Ask("GET", path), 200).at("allowInternetAccess"), false);
  Refusal(Ask("PUT", path + "/network", R"({"egressProxy":{"address":"x:1"}})"), 403);
}

TEST_F(ApiTest, MetricsOfOneAndOfMany) {
  StartApi();
  std::string id = MakeOne(), path = "/sandboxes/" + id + "/metrics";
  json::value list = Json(Ask("GET", path), 200);
  ASSERT_EQ(list.as_array().size(), 1u);
  EXPECT_EQ(list.at(0).at("memTotal"), 2);
  int64_t at = list.at(0).at("timestampUnix").as_int64();
  auto in_range = [&](int64_t start, int64_t end) {
    return Json(Ask("GET", fmt::format("{}?start={}&end={}", path, start, end)), 200)
        .as_array()
        .size();
  };
  EXPECT_EQ(in_range(at, at), 1u);
  EXPECT_EQ(in_range(at + 1, at + 9), 0u);
  EXPECT_EQ(in_range(1000, 2000), 0u);
  EXPECT_EQ(in_range(0, std::numeric_limits<int64_t>::max()), 1u);
  Refusal(Ask("GET", path + "?start=yesterday"), 400);

  json::value many = Json(Ask("GET", "/sandboxes/metrics?sandbox_ids=" + id + ",inone"), 200);
  EXPECT_EQ(many.at("sandboxes").as_object().size(), 1u);
  EXPECT_EQ(many.at("sandboxes").at(id).at("cpuCount"), 3);
  Refusal(Ask("GET", "/sandboxes/metrics"), 400);
  std::string too_many = "/sandboxes/metrics?sandbox_ids=i0";
  for (int i = 1; i <= 100; ++i) too_many += ",i" + std::to_string(i);
  Refusal(Ask("GET", too_many), 400);
}

TEST_F(ApiTest, LogsAreTheTimeline) {
  StartApi();
  std::string id = MakeOne();
  Ask("POST", "/sandboxes/" + id + "/timeout", R"({"timeout":20})");
  Ask("DELETE", "/sandboxes/" + id);
  json::value v1 = Json(Ask("GET", "/sandboxes/" + id + "/logs"), 200);  // also after its end
  ASSERT_EQ(v1.at("logs").as_array().size(), 3u);
  ASSERT_EQ(v1.at("logEntries").as_array().size(), 3u);
  json::value line = json::parse(v1.at("logs").at(0).at("line").as_string());
  EXPECT_EQ(line.at("level"), "info");
  EXPECT_EQ(line.at("logger"), "caisson");
  auto v1_count = [&](const std::string& query) {
    return Json(Ask("GET", "/sandboxes/" + id + "/logs" + query), 200).at("logs").as_array().size();
  };
  EXPECT_EQ(v1_count("?limit=1"), 1u);
  EXPECT_EQ(v1_count("?start=9999999999999"), 0u);
  EXPECT_EQ(v1_count("?start=0&limit=2"), 2u);
  Refusal(Ask("GET", "/sandboxes/" + id + "/logs?limit=-1"), 400);
  Refusal(Ask("GET", "/sandboxes/" + id + "/logs?start=x"), 400);

  auto v2 = [&](const std::string& query) {
    return Json(Ask("GET", "/v2/sandboxes/" + id + "/logs" + query), 200).at("logs").as_array();
  };
  EXPECT_EQ(v2("").size(), 3u);
  EXPECT_EQ(v2("?level=info").size(), 2u);  // the timeout is a detail
  EXPECT_EQ(v2("?direction=backward&limit=1")[0].at("fields").at("event"), "killed");
  EXPECT_EQ(v2("?search=template").size(), 1u);
  EXPECT_EQ(v2("?cursor=9999999999999").size(), 0u);
  EXPECT_EQ(v2("?cursor=9999999999999&direction=backward").size(), 3u);
  Refusal(Ask("GET", "/v2/sandboxes/" + id + "/logs?direction=up"), 400);
  Refusal(Ask("GET", "/v2/sandboxes/" + id + "/logs?level=loud"), 400);
}

TEST_F(ApiTest, Templates) {
  StartApi();
  MakeOne();
  for (const char* path : {"/templates", "/v2/templates"}) {
    json::value list = Json(Ask("GET", path), 200);
    ASSERT_EQ(list.as_array().size(), 1u);
    EXPECT_EQ(list.at(0).at("templateID"), "base-id");
    EXPECT_EQ(list.at(0).at("spawnCount"), 1);
    EXPECT_EQ(list.at(0).at("cpuCount"), 3);
    EXPECT_EQ(list.at(0).at("aliases"), json::parse(R"(["base","debian"])"));
    EXPECT_EQ(list.at(0).at("buildID").as_string().size(), 36u);
    EXPECT_EQ(list.at(0).at("tools"), json::parse(R"([{"name":"git","version":"2.47"}])"));
  }
  EXPECT_EQ(Json(Ask("GET", "/templates/aliases/debian"), 200),
            json::parse(R"({"templateID":"base-id","public":true})"));
  Refusal(Ask("GET", "/templates/aliases/nope"), 404);
}

TEST_F(ApiTest, BrowsersMayAskFirst) {
  StartApi();
  http::Response preflight =
      Ask("OPTIONS", "/v2/sandboxes", "",
          {{"Origin", "https://a.example"}, {"Access-Control-Request-Headers", "x-api-key, lang"}});
  EXPECT_EQ(preflight.status, 204u);
  EXPECT_EQ(preflight.headers.Value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(preflight.headers.Value("Access-Control-Allow-Headers"), "x-api-key, lang");
  EXPECT_NE(preflight.headers.Value("Access-Control-Allow-Methods").find("POST"),
            std::string_view::npos);
  EXPECT_NE(Ask("GET", "/v2/sandboxes")
                .headers.Value("Access-Control-Expose-Headers")
                .find("X-Next-Token"),
            std::string_view::npos);
}

TEST_F(ApiTest, TheDomainNamesThePortOnlyIfItMustBeNamed) {
  StartApi();
  auto domain = [&](const std::string& tls, const std::string& name, uint16_t port) {
    Config config = config_;
    config.tls = tls;
    config.domain = name;
    return Api(*manager_, *accounts_, *audit_, templates_, config, port).domain();
  };
  EXPECT_EQ(domain("off", "d.test", 8000), "d.test:8000");
  EXPECT_EQ(domain("off", "d.test", 80), "d.test");
  EXPECT_EQ(domain("auto", "d.test", 443), "d.test");
  EXPECT_EQ(domain("auto", "d.test", 80), "d.test:80");
  EXPECT_EQ(domain("off", "d.test:9", 8000), "d.test:9");
}

}  // namespace
}  // namespace caisson::e2b
