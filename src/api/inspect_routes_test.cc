// /api/v1 as a client sees it.
#include "api/inspect_routes.h"

#include <boost/json.hpp>

#include "account/accounts.h"
#include "api/sandbox_routes.h"
#include "base/log.h"
#include "e2b/fake_exchange.h"
#include "sandbox/manager_fixture.h"

namespace caisson::api {
namespace {

namespace json = boost::json;

class OwnApiTest : public sandbox::ManagerFixture {
 protected:
  OwnApiTest() {
    keys_ = account::KeyRing::Open(dir_.path(), kKey).value();
    StartServer();
    accounts_ =
        std::make_unique<account::Accounts>(io_.get_executor(), *store_, keys_, "secret", config_);
    EXPECT_TRUE(Wait(accounts_->Start()));
    frame_ = std::make_unique<Frame>(router_, *store_, *accounts_, config_);
    frame_->CheckAnswers();
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
    provider_ = sandbox::MakeLocalProvider(*manager_, config_);
    sandboxes_ = std::make_unique<work::Sandboxes>(io_.get_executor(), config_, *store_, *log_,
                                                   *provider_, "test");
    sandbox_routes_ = std::make_unique<SandboxRoutes>(*sandboxes_, *manager_, config_);
    sandbox_routes_->Add(*frame_);
    AddInspectRoutes(*frame_, *manager_, config_);
  }
  ~OwnApiTest() override {
    testing::Await(io_, sandboxes_->Stop());
    testing::Await(io_, log_->Stop());
  }

  json::value Ask(unsigned status, const std::string& method, const std::string& target,
                  const std::string& body = "") {
    auto match = router_.Find(method, target.substr(0, target.find('?')));
    EXPECT_TRUE(match.handler) << method << " " << target;
    if (!match.handler) return {};
    e2b::FakeExchange exchange(io_.get_executor(), method, target, body,
                               {{"X-API-KEY", kKey}, {"Content-Type", "application/json"}});
    testing::Await(io_, (*match.handler)(exchange, match.params));
    EXPECT_EQ(exchange.answer->status, status) << exchange.answer->body;
    text_ = exchange.answer->body;
    return json::parse(text_);
  }

  static constexpr const char* kKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  account::KeyRing keys_;
  std::unique_ptr<account::Accounts> accounts_;
  http::Router router_;
  std::unique_ptr<events::Log> log_;
  std::unique_ptr<sandbox::Provider> provider_;
  std::unique_ptr<work::Sandboxes> sandboxes_;
  std::unique_ptr<SandboxRoutes> sandbox_routes_;
  std::unique_ptr<Frame> frame_;
  std::string text_;  // of the last answer
};

TEST_F(OwnApiTest, ATimelineIsPagedAndOutlivesItsSandbox) {
  std::string id = Make().id, path = "/api/v1/sandboxes/" + id + "/timeline";
  ASSERT_TRUE(Wait(manager_->SetTimeout("admin", id, std::chrono::seconds(60), false)));
  ASSERT_TRUE(Wait(manager_->Kill("admin", id)));
  json::value first = Ask(200, "GET", path + "?limit=2");
  EXPECT_EQ(first.at("events").as_array().size(), 2);
  EXPECT_EQ(first.at("events").at(0).at("type"), "created");
  EXPECT_EQ(first.at("events").at(1).at("type"), "timeout_set");
  int64_t next = first.at("next").as_int64();
  json::value rest = Ask(200, "GET", fmt::format("{}?limit=2&after={}", path, next));
  EXPECT_FALSE(rest.as_object().contains("next"));
  ASSERT_EQ(rest.at("events").as_array().size(), 1);
  const json::value& last = rest.at("events").at(0);
  EXPECT_EQ(last.at("type"), "killed");
  EXPECT_EQ(last.at("reason"), "request");
  EXPECT_EQ(last.at("fields").at("key"), "admin");
  EXPECT_EQ(last.at("level"), "info");
  EXPECT_TRUE(last.at("at").is_string() && last.at("message").is_string());
}

TEST_F(OwnApiTest, WhatBelongsToAnotherKeyDoesNotExist) {
  std::string id = Make(Options("somebody")).id;
  for (const char* what : {"", "/timeline", "/diagnostics"})
    Ask(404, "GET", fmt::format("/api/v1/sandboxes/{}{}", id, what));
  Ask(404, "PATCH", fmt::format("/api/v1/sandboxes/{}/limits", id), R"({"pids":100})");
  Ask(404, "GET", "/api/v1/sandboxes/inosuchsandbox/timeline");
  ASSERT_TRUE(Wait(manager_->Kill("somebody", id)));
  Ask(404, "GET", fmt::format("/api/v1/sandboxes/{}/timeline", id));
}

TEST_F(OwnApiTest, ShowsStateLimitsAndReason) {
  std::string id = Make().id, path = "/api/v1/sandboxes/" + id;
  json::value running = Ask(200, "GET", path);
  EXPECT_EQ(running.at("state"), "running");
  EXPECT_EQ(running.at("limits").at("cpuCount"), 3);
  EXPECT_EQ(running.at("limits").at("pids"), config_.sandbox_pids);
  EXPECT_FALSE(running.as_object().contains("reason"));
  engine_.Exit(id, engine::ExitReason::kOutOfMemory);
  ASSERT_TRUE(Until([&] { return RowOf(id).state == "killed"; }));
  json::value ended = Ask(200, "GET", path);
  EXPECT_EQ(ended.at("state"), "killed");
  EXPECT_EQ(ended.at("reason"), "out_of_memory");
  EXPECT_TRUE(ended.as_object().contains("endedAt"));
}

TEST_F(OwnApiTest, LimitsChangeWhileItRuns) {
  std::string id = Make().id, path = "/api/v1/sandboxes/" + id;
  json::value set = Ask(200, "PATCH", path + "/limits", R"({"cpuCount":1,"pids":50})");
  EXPECT_EQ(set.at("cpuCount"), 1);
  EXPECT_EQ(set.at("memoryMB"), 512);
  EXPECT_EQ(engine_.instances[id].limits.pids, 50);
  EXPECT_EQ(Ask(200, "GET", path).at("limits"), set);
  for (const char* wrong :
       {R"({"pids":1})", R"({"cpuCount":1000})", R"({"openFiles":99999})", R"({"diskSizeMB":20})"})
    Ask(400, "PATCH", path + "/limits", wrong);
  for (const char* wrong : {R"({})", R"({"wings":2})", R"({"pids":"many"})", R"({"pids":1.5})"})
    Ask(422, "PATCH", path + "/limits", wrong);
  EXPECT_EQ(Ask(200, "GET", path).at("limits"), set);
}

TEST_F(OwnApiTest, DiagnosticsHoldNoSecret) {
  auto options = Options();
  options.env["TOKEN"] = "very-secret-value";
  sandbox::Info made = Make(options);
  LogWarn("a line about it", {{"sandbox", made.id}});
  LogWarn("a line about another", {{"sandbox", "iother"}});
  json::value bundle = Ask(200, "GET", fmt::format("/api/v1/sandboxes/{}/diagnostics", made.id));
  EXPECT_EQ(bundle.at("sandbox").at("sandboxID"), made.id.c_str());
  EXPECT_EQ(bundle.at("timeline").at(0).at("type"), "created");
  EXPECT_EQ(bundle.at("engine").at("savesMemory"), true);
  EXPECT_EQ(bundle.at("server").at("settings").at("max_sandboxes"), config_.max_sandboxes);
  EXPECT_TRUE(bundle.at("server").at("version").is_string());
  EXPECT_NE(text_.find("a line about it"), std::string::npos);
  EXPECT_EQ(text_.find("a line about another"), std::string::npos);
  EXPECT_EQ(text_.find("very-secret-value"), std::string::npos);
  ASSERT_FALSE(made.access_token.empty());
  EXPECT_EQ(text_.find(made.access_token), std::string::npos);
  EXPECT_EQ(text_.find(dir_.path()), std::string::npos);
  // The fake engine's sandbox has no envd, and that is said.
  EXPECT_TRUE(bundle.as_object().contains("processesError"));
}

TEST_F(OwnApiTest, StorageCountsWhatIsSaved) {
  Make();
  Make();
  engine_.saved["isnapshot"] = {.id = "isnapshot", .memory_bytes = 3, .disk_bytes = 5};
  json::value use = Ask(200, "GET", "/api/v1/storage");
  EXPECT_EQ(use.at("running").at("count"), 2);
  EXPECT_EQ(use.at("snapshots").at("count"), 1);
  EXPECT_EQ(use.at("snapshots").at("memoryBytes"), 3);
  EXPECT_EQ(use.at("snapshots").at("diskBytes"), 5);
  EXPECT_EQ(use.at("paused").at("count"), 0);
}

TEST_F(OwnApiTest, ADrainedServerStartsNothing) {
  std::string id = Make().id;
  EXPECT_EQ(Ask(200, "POST", "/api/v1/drain"), json::parse(R"({"paused":1,"failed":[]})"));
  EXPECT_EQ(Wait(manager_->Create(Options())).error().code(), Code::kUnavailable);
  json::value detail = Ask(200, "GET", "/api/v1/sandboxes/" + id);
  EXPECT_EQ(detail.at("state"), "paused");
  EXPECT_EQ(Ask(200, "DELETE", "/api/v1/drain"), json::parse(R"({"draining":false})"));
  EXPECT_TRUE(Wait(manager_->Connect("admin", id, {}))->resumed);
}

}  // namespace
}  // namespace caisson::api
