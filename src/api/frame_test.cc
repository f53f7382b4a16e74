// What every route of /api/v1 has in common, on routes made for this.
#include "api/frame.h"

#include "api/account_routes.h"
#include "api/auth_routes.h"
#include "api/frame_fixture.h"
#include "api/openapi.h"
#include "api/server_routes.h"

namespace caisson::api {
namespace {

class FrameTest : public FrameFixture {
 protected:
  void AddRoutes(Frame& frame) override {
    AddServerRoutes(frame, *store_, {DatabaseProbe(*store_)}, [this] { return alerts_; });
    AddAuthRoutes(frame, *accounts_, config_);
    AddAccountRoutes(frame, *accounts_);
    frame.AddSchema("Thing", R"({"type":"object","required":["name"],
      "properties":{"name":{"type":"string"},"list":{"type":"array"},"inner":{"type":"object"}}})");
    frame.Add({.method = "POST",
               .pattern = "/api/v1/things",
               .tag = "test",
               .id = "makeThing",
               .summary = "",
               .request = "Thing",
               .responses = {{201, "Thing"}},
               .handler = [this](Call& call) { return Make(call); }});
    frame.Add({.method = "GET",
               .pattern = "/api/v1/things/{id}",
               .tag = "test",
               .id = "getThing",
               .summary = "",
               .access = Access::kViewer,
               .parameters = {{.name = "n", .type = "integer", .min = 1, .max = 9},
                              {.name = "kind", .values = {"a", "b"}, .repeated = true},
                              {.name = "deep", .type = "boolean"}},
               .handler = [](Call& call) { return Get(call); }});
    frame.Add({.method = "POST",
               .pattern = "/api/v1/secrets",
               .tag = "test",
               .id = "makeSecret",
               .summary = "",
               .secret = true,
               .handler = [](Call& call) { return Get(call); }});
    frame.Add({.method = "DELETE",
               .pattern = "/api/v1/things/{id}",
               .tag = "test",
               .id = "throwThing",
               .summary = "",
               .responses = {{204, ""}},
               .handler = [](Call&) -> Answer { throw std::runtime_error("broken"); }});
    frame.AddAlias("GET", "/api/v1/old/{id}", "/api/v1/things/{id}");
  }
  Answer Make(Call& call) {
    ++made_;
    if (fail_with_) co_return Fail(*fail_with_, "as asked for");
    call.target = "thing-1";
    co_return http::Response::Json(201, call.body);
  }
  static Answer Get(Call& call) {
    co_return http::Response::Json(200, json::object{{"user", call.who.user_id}});
  }
  std::vector<store::AuditRow> Audit() {
    return Wait(store_->Read([](store::Transaction& tx) {
             return tx.List(store::Select<store::AuditRow>().Order(&store::AuditRow::id));
           }))
        .value();
  }
  http::Response Post(const std::string& body, const std::string& idempotency_key,
                      const std::string& key = kAdminKey) {
    return Send("POST", "/api/v1/things", body,
                {{"X-API-KEY", key}, {"Idempotency-Key", idempotency_key}});
  }

  json::array alerts_;
  int made_ = 0;
  std::optional<Code> fail_with_;
};

std::string CodeOf(const http::Response& answer) {
  return std::string(json::parse(answer.body).at("error").at("code").as_string());
}

TEST_F(FrameTest, TakesKeysInBothHeaders) {
  BeginServer();
  std::string key = KeyOf("mia", "member");
  http::Response answer = Send("GET", "/api/v1/things/1", "", {{"Authorization", "Bearer " + key}});
  EXPECT_EQ(answer.status, 200u);
  EXPECT_TRUE(answer.headers.Value("Server-Timing").starts_with("total;dur="));
  EXPECT_EQ(answer.headers.Value("Cache-Control"), "no-store");
  for (http::Headers headers : {http::Headers{}, http::Headers{{"X-API-KEY", key + "0"}},
                                http::Headers{{"Authorization", "Bearer x.y.z"}},
                                http::Headers{{"Cookie", "caisson_access=x.y.z"}}}) {
    http::Response refused = Send("GET", "/api/v1/things/1", "", headers);
    EXPECT_EQ(refused.status, 401u);
    EXPECT_EQ(CodeOf(refused), "unauthenticated");
  }
}

TEST_F(FrameTest, RolesBound) {
  BeginServer();
  std::string viewer = KeyOf("vera", "viewer"), member = KeyOf("mia", "member");
  Ask(200, "GET", "/api/v1/things/1", "", viewer);
  Ask(403, "POST", "/api/v1/things", R"({"name":"x"})", viewer);
  Ask(201, "POST", "/api/v1/things", R"({"name":"x"})", member);
  Ask(403, "GET", "/api/v1/users", "", member);
  Ask(403, "GET", "/api/v1/audit", "", member);
  Ask(200, "GET", "/api/v1/users");
  // The audit log has the refused call too, and whose it was.
  auto rows = Audit();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].status, 403);
  EXPECT_EQ(rows[0].actor_id, accounts_->FindUserByName("vera")->id);
  EXPECT_EQ(rows[1].action, "POST /api/v1/things");
  EXPECT_EQ(rows[1].target, "thing-1");
  EXPECT_EQ(rows[1].request_id, "test");
  EXPECT_EQ(rows[1].address, "127.0.0.1");
  json::value page = Ask(200, "GET", "/api/v1/audit?limit=1");
  EXPECT_EQ(page.at("entries").at(0).at("status"), 201);
  page = Ask(200, "GET", "/api/v1/audit?before=" + json::serialize(page.at("next")));
  EXPECT_EQ(page.at("entries").at(0).at("status"), 403);
  EXPECT_FALSE(page.as_object().contains("next"));
}

TEST_F(FrameTest, BodiesAreChecked) {
  config_.api_max_body_bytes = 2000;
  config_.api_max_string = 100;
  config_.api_max_array = 10;
  config_.api_max_json_depth = 4;
  BeginServer();
  auto code = [&](unsigned status, const std::string& body) {
    return std::string(
        Ask(status, "POST", "/api/v1/things", body).at("error").at("code").as_string());
  };
  EXPECT_EQ(code(400, "{"), "malformed_json");
  EXPECT_EQ(code(400, "\"\xff\""), "malformed_json");
  EXPECT_EQ(code(400, ""), "malformed_json");
  EXPECT_EQ(code(413, std::string(2001, ' ')), "payload_too_large");
  for (std::string wrong : {std::string(R"({"nam":"x"})"), std::string(R"({"name":"x","wings":2})"),
                            R"({"name":")" + std::string(101, 'x') + R"("})",
                            std::string(R"({"name":"x","list":[1,2,3,4,5,6,7,8,9,10,11]})"),
                            std::string(R"({"name":"x","inner":{"a":{"b":{"c":{}}}}})"),
                            std::string(R"({"name":"a\u0000b"})")})
    EXPECT_EQ(code(422, wrong), "validation_failed") << wrong;
  http::Response form =
      Send("POST", "/api/v1/things", "name=x",
           {{"X-API-KEY", kAdminKey}, {"Content-Type", "application/x-www-form-urlencoded"}});
  EXPECT_EQ(form.status, 415u);
  EXPECT_EQ(made_, 0);
  Ask(201, "POST", "/api/v1/things", R"({"name":"x","inner":{"a":{"b":{}}}})");
  Ask(422, "POST", "/api/v1/secrets", R"({"a":1})");
  Ask(200, "POST", "/api/v1/secrets", " {} ");
}

TEST_F(FrameTest, QueriesAreChecked) {
  BeginServer();
  Ask(200, "GET", "/api/v1/things/1?n=9&kind=a&kind=b&deep=true");
  for (const char* wrong :
       {"n=0", "n=10", "n=x", "n=", "n=1&n=2", "kind=c", "deep=1", "m=1", "kind=%00", "kind=%ff"})
    Ask(422, "GET", std::string("/api/v1/things/1?") + wrong);
  Ask(404, "GET", "/api/v1/things/%00");
  Ask(404, "GET", "/api/v1/things/%ff");
  Ask(200, "GET", "/api/v1/old/1");
}

TEST_F(FrameTest, AnIdempotentRequestIsDoneOnce) {
  BeginServer();
  std::string member = KeyOf("mia", "member");
  http::Response first = Post(R"({"name":"x"})", "k1"), again = Post(R"({"name":"x"})", "k1");
  EXPECT_EQ(first.status, 201u);
  EXPECT_EQ(again.status, 201u);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.headers.Value("Idempotency-Replayed"), "true");
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(CodeOf(Post(R"({"name":"y"})", "k1")), "idempotency_conflict");
  EXPECT_EQ(made_, 1);
  // Somebody else's key is another one.
  EXPECT_EQ(Post(R"({"name":"y"})", "k1", member).status, 201u);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(Post("{}", "").status, 422u);
  EXPECT_EQ(Post(R"({"name":"y"})", std::string(256, 'k')).status, 422u);
  // What may work the next time is done again, what will not is not.
  fail_with_ = Code::kUnavailable;
  EXPECT_EQ(Post(R"({"name":"x"})", "k2").status, 503u);
  fail_with_ = Code::kFailedPrecondition;
  EXPECT_EQ(Post(R"({"name":"x"})", "k2").status, 409u);
  fail_with_.reset();
  EXPECT_EQ(Post(R"({"name":"x"})", "k2").status, 409u);
  EXPECT_EQ(made_, 4);
}

TEST_F(FrameTest, WhatACrashLeftUndoneIsDoneAgain) {
  BeginServer();
  http::Response first = Post(R"({"name":"x"})", "k1");
  ASSERT_EQ(first.status, 201u);
  // As if the server had been killed between the beginning and the end.
  auto unfinished = [](store::Transaction& tx) {
    return tx.Set(store::Select<store::IdempotencyRow>(),
                  {store::Assign(&store::IdempotencyRow::status, 0),
                   store::Assign(&store::IdempotencyRow::body, "")});
  };
  ASSERT_EQ(Wait(store_->Write(unfinished)).value(), 1);
  http::Response busy = Post(R"({"name":"x"})", "k1");
  EXPECT_EQ(busy.status, 409u);
  EXPECT_EQ(CodeOf(busy), "in_progress");
  EXPECT_EQ(json::parse(busy.body).at("error").at("retryable"), true);
  EXPECT_EQ(busy.headers.Value("Retry-After"), "1");
  EndServer();
  BeginServer();
  EXPECT_EQ(Post(R"({"name":"y"})", "k1").status, 409u);
  EXPECT_EQ(Post(R"({"name":"x"})", "k1").body, first.body);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(Post(R"({"name":"x"})", "k1").headers.Value("Idempotency-Replayed"), "true");
  EXPECT_EQ(made_, 2);
  // And it is forgotten when its time is over.
  config_.idempotency_hours = 0;
  EXPECT_EQ(Post(R"({"name":"x"})", "k1").status, 201u);
  EXPECT_EQ(made_, 3);
}

TEST_F(FrameTest, SecretsAreNotKept) {
  BeginServer();
  auto post = [&] {
    return Send("POST", "/api/v1/keys", R"({"name":"ci"})",
                {{"X-API-KEY", kAdminKey}, {"Idempotency-Key", "k"}});
  };
  http::Response made = post();
  ASSERT_EQ(made.status, 201u) << made.body;
  std::string text(json::parse(made.body).at("key").as_string());
  EXPECT_EQ(CodeOf(post()), "already_done");
  auto rows = Wait(store_->Read([](store::Transaction& tx) {
                return tx.List(store::Select<store::IdempotencyRow>());
              })).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].body, "");
  json::value listed = Ask(200, "GET", "/api/v1/keys");
  EXPECT_EQ(json::serialize(listed).find(text), std::string::npos);
  EXPECT_EQ(listed.at("keys").at(0).at("user_id"), "admin");
}

TEST_F(FrameTest, AHandlerThatBreaksIsA500) {
  BeginServer();
  json::value error = Ask(500, "DELETE", "/api/v1/things/7").at("error");
  EXPECT_EQ(error.at("code"), "internal");
  EXPECT_EQ(error.at("debug_id"), "test");
  EXPECT_EQ(json::serialize(error).find("broken"), std::string::npos);
  EXPECT_EQ(Audit().at(0).target, "7");
}

TEST_F(FrameTest, RatesAreThoseOfTheUser) {
  BeginServer();
  frame_->SetRates({.admit = [](const std::string& user_id) -> Status {
                      if (user_id == "admin") return {};
                      return Fail(Code::kResourceExhausted, "too many requests");
                    },
                    .retry_after = [](const std::string&) { return std::chrono::seconds(7); }});
  std::string member = KeyOf("mia", "member");
  http::Response refused = Send("GET", "/api/v1/things/1", "", {{"X-API-KEY", member}});
  EXPECT_EQ(refused.status, 429u);
  EXPECT_EQ(refused.headers.Value("Retry-After"), "7");
  EXPECT_EQ(json::parse(refused.body).at("error").at("retryable"), true);
  Ask(200, "GET", "/api/v1/things/1");
}

TEST_F(FrameTest, OnlyNamedOriginsMayRead) {
  config_.cors_origins = "http://localhost:3000, https://board.example";
  BeginServer();
  auto origin = [&](const char* method, const char* from) {
    return Send(method, "/api/v1/things/1", "", {{"X-API-KEY", kAdminKey}, {"Origin", from}});
  };
  http::Response named = origin("GET", "https://board.example");
  EXPECT_EQ(named.headers.Value("Access-Control-Allow-Origin"), "https://board.example");
  EXPECT_EQ(named.headers.Value("Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(named.headers.Value("Vary"), "Origin");
  EXPECT_FALSE(origin("GET", "https://elsewhere").headers.Has("Access-Control-Allow-Origin"));
  http::Response preflight = origin("OPTIONS", "http://localhost:3000");
  EXPECT_EQ(preflight.status, 204u);
  EXPECT_EQ(preflight.headers.Value("Access-Control-Allow-Methods"), "GET, HEAD, DELETE, OPTIONS");
  http::Response refused = origin("OPTIONS", "https://elsewhere");
  EXPECT_FALSE(refused.headers.Has("Access-Control-Allow-Methods"));
  EXPECT_EQ(refused.headers.Value("Allow"), "GET, HEAD, DELETE, OPTIONS");
}

TEST_F(FrameTest, TheDocumentDescribesWhatIsServed) {
  BeginServer();
  json::object document = frame_->Document();
  EXPECT_EQ(document["openapi"], "3.1.0");
  const json::object& paths = document["paths"].as_object();
  const json::value& get = paths.at("/api/v1/things/{id}").at("get");
  EXPECT_EQ(get.at("operationId"), "getThing");
  EXPECT_EQ(get.at("parameters").as_array().size(), 4u);
  EXPECT_EQ(get.at("x-role"), "viewer");
  const json::value& old = paths.at("/api/v1/old/{id}").at("get");
  EXPECT_EQ(old.at("deprecated"), true);
  EXPECT_EQ(old.at("operationId"), "getThingAliasOldId");
  const json::value& post = paths.at("/api/v1/things").at("post");
  EXPECT_EQ(post.at("requestBody").at("content").at("application/json").at("schema").at("$ref"),
            "#/components/schemas/Thing");
  for (const char* status : {"201", "400", "401", "403", "409", "413", "415", "422", "429"})
    EXPECT_TRUE(post.at("responses").as_object().contains(status)) << status;
  EXPECT_EQ(document["components"].at("schemas").at("Thing").at("additionalProperties"), false);
  EXPECT_EQ(json::parse(Send("GET", "/api/v1/openapi.json", "", {}).body), json::value(document));
}

TEST(OpenApi, IdsOfAliasesAreMadeOfTheirPaths) {
  EXPECT_EQ(AliasId("gitClone", "/api/v1/git/clone"), "gitCloneAliasGitClone");
  EXPECT_EQ(AliasId("gitClone", "/api/v1/sandboxes/{id}/clone"), "gitCloneAliasSandboxesIdClone");
  EXPECT_EQ(AliasId("createSession", "/api/sessions"), "createSessionAliasApiSessions");
  EXPECT_EQ(AliasId("x", "/api/v1/pull-requests/{task_id}"), "xAliasPullRequestsTaskId");
}

// Clients are generated from these ids: a route that is added must not change those of others.
TEST_F(FrameTest, IdsDoNotDependOnTheOrderOfRoutes) {
  BeginServer();
  struct Pair {
    std::string_view id, pattern, old;
  };
  auto ids = [&](std::vector<Pair> routes) {
    http::Router router;
    Frame frame(router, *store_, *accounts_, config_);
    for (const Pair& one : routes) {
      frame.Add({.method = "GET",
                 .pattern = one.pattern,
                 .tag = "test",
                 .id = one.id,
                 .summary = "",
                 .handler = [](Call& call) { return Get(call); }});
      frame.AddAlias("GET", one.old, one.pattern);
    }
    std::map<std::string, std::string> found;
    json::object document = frame.Document();
    for (const auto& [path, item] : document["paths"].as_object())
      found[std::string(path)] = std::string(item.at("get").at("operationId").as_string());
    return found;
  };
  Pair a{"a", "/api/v1/a", "/api/old/a"}, b{"b", "/api/v1/b", "/api/old/b"},
      c{"c", "/api/v1/c", "/api/old/c"};
  auto there = ids({a, b, c});
  EXPECT_EQ(there, ids({c, b, a}));
  EXPECT_EQ(there.at("/api/old/b"), "bAliasApiOldB");
  std::set<std::string> unique;
  for (const auto& [path, id] : there) EXPECT_TRUE(unique.insert(id).second) << id;
}

TEST_F(FrameTest, HealthTellsWhatIsWrong) {
  BeginServer();
  EXPECT_EQ(Ask(200, "GET", "/api/v1/health", "", "").at("status"), "ok");
  json::value well = Ask(200, "GET", "/api/v1/health/detailed");
  EXPECT_EQ(well.at("status"), "ok");
  EXPECT_EQ(well.at("checks").at("database").at("users"), 1);
  EXPECT_TRUE(well.at("alerts").as_array().empty());
  alerts_.push_back({{"rule", "error_pct"},
                     {"value", 7},
                     {"limit", 5},
                     {"since", FormatTime(Now())},
                     {"message", "7 % of the requests failed; the limit is 5 %."}});
  json::value warned = Ask(200, "GET", "/api/v1/health/detailed");
  EXPECT_EQ(warned.at("status"), "ok") << "it works";
  EXPECT_EQ(warned.at("alerts").at(0).at("rule"), "error_pct");
  ASSERT_TRUE(Wait(store_->Close()));
  json::value ill =
      json::parse(Send("GET", "/api/v1/health/detailed", "", {{"X-API-KEY", kAdminKey}}).body);
  EXPECT_EQ(ill.at("status"), "down");
  EXPECT_EQ(ill.at("checks").at("database").at("status"), "failed");
}

}  // namespace
}  // namespace caisson::api
