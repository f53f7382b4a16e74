// Webhooks and the routes for GitHub, as clients see them. tests/forge has the same with a forge.
#include <boost/json.hpp>

#include "api/frame_fixture.h"
#include "api/github_routes.h"
#include "base/encoding.h"
#include "store/work_rows.h"

namespace caisson::api {
namespace {

constexpr const char* kPath = "/api/v1/webhooks/github";
constexpr const char* kClosed = R"({"action":"closed","number":7,"pull_request":{"number":7,
    "html_url":"https://github.com/acme/widget/pull/7","merged":true,"merge_commit_sha":"abc",
    "head":{"ref":"task-1"},"base":{"ref":"main"}},"repository":{"full_name":"acme/widget"},
    "sender":{"login":"grace"}})";

class WebhookRoutesTest : public FrameFixture {
 protected:
  WebhookRoutesTest() {
    config_.github_webhook_secret = "a webhook's secret";
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
    engine_ = std::make_unique<flow::Engine>(io_.get_executor(), *store_, config_);
    github_ = std::make_unique<forge::GitHub>(io_.get_executor(), config_);
    pulls_ =
        std::make_unique<work::PullRequests>(work::Platform{*store_, *log_, *engine_, config_});
    BeginServer();
  }
  ~WebhookRoutesTest() override {
    EndServer();
    testing::Await(io_, log_->Stop());
  }
  void AddRoutes(Frame& frame) override {
    authors_ = std::make_unique<work::Authors>(
        io_.get_executor(), work::Platform{*store_, *log_, *engine_, config_}, tokens_, *github_);
    GithubServices services{*github_, *authors_, *pulls_, config_};
    AddGithubRoutes(frame, services);
    AddWebhookRoutes(frame, services);
  }

  std::string Sign(const std::string& body) {
    return "sha256=" + HexEncode(HmacSha256("a webhook's secret", body));
  }
  http::Response Deliver(const std::string& body, const std::string& signature,
                         const std::string& id = "d-1") {
    return Send("POST", kPath, body,
                {{"X-GitHub-Event", "pull_request"},
                 {"X-GitHub-Delivery", id},
                 {"X-Hub-Signature-256", signature}});
  }
  void AddTask() {
    EXPECT_TRUE(Wait(store_->Write([](store::Transaction& tx) {
      store::TaskRow task{.id = "one", .number = 1, .owner_id = "admin", .title = "one"};
      task.status = "in_review";
      task.repo_url = "https://github.com/acme/widget.git";
      task.git_branch = "task-1";
      task.pull_request_number = 7;
      return tx.Insert(task);
    })));
  }
  std::string StatusOfTask() {
    return Wait(store_->Read(
                    [](store::Transaction& tx) { return tx.Need<store::TaskRow>("one", "task"); }))
        .value()
        .status;
  }

  std::unique_ptr<events::Log> log_;
  std::unique_ptr<flow::Engine> engine_;
  std::unique_ptr<forge::GitHub> github_;
  account::GithubTokens tokens_{*store_, "a secret"};
  std::unique_ptr<work::Authors> authors_;
  std::unique_ptr<work::PullRequests> pulls_;
};

TEST_F(WebhookRoutesTest, ASignedDeliveryMovesTheTaskOnce) {
  AddTask();
  http::Response answer = Deliver(kClosed, Sign(kClosed));
  EXPECT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(json::parse(answer.body).at("status"), "processed");
  EXPECT_EQ(StatusOfTask(), "done");
  answer = Deliver(kClosed, Sign(kClosed));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(json::parse(answer.body).at("status"), "ignored");
}

TEST_F(WebhookRoutesTest, WhatIsNotSignedChangesNothing) {
  AddTask();
  std::string other = Sign("another body");
  EXPECT_EQ(Deliver(kClosed, "").status, 400u);
  EXPECT_EQ(Deliver(kClosed, other).status, 400u);
  EXPECT_EQ(Deliver("no json", Sign("no json")).status, 400u);
  EXPECT_EQ(Deliver("{}", Sign("{}")).status, 400u);
  EXPECT_EQ(Deliver(kClosed, Sign(kClosed), "").status, 400u);
  EXPECT_EQ(StatusOfTask(), "in_review");
}

// B-12: no secret means that nobody is believed, not everybody.
TEST_F(WebhookRoutesTest, WithoutASecretNothingIsReceived) {
  config_.github_webhook_secret.clear();
  AddTask();
  EXPECT_EQ(Deliver(kClosed, Sign(kClosed)).status, 503u);
  EXPECT_EQ(Deliver(kClosed, "sha256=" + HexEncode(HmacSha256("", kClosed))).status, 503u);
  EXPECT_EQ(StatusOfTask(), "in_review");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/webhooks/github/test").at("secret_configured"), false);
}

TEST_F(WebhookRoutesTest, TellsWhatItReceives) {
  json::value answer = Ask(200, "GET", "/api/v1/webhooks/github/test");
  EXPECT_EQ(answer.at("secret_configured"), true);
  EXPECT_EQ(answer.at("endpoint"), kPath);
  EXPECT_EQ(answer.at("supported_events"),
            json::parse(R"(["pull_request","pull_request_review","ping"])"));
}

TEST_F(WebhookRoutesTest, WithoutACredentialTheRoutesSaySo) {
  json::value answer = Ask(503, "GET", "/api/v1/github/pull-requests/1?repo=acme/widget");
  EXPECT_NE(std::string(answer.at("error").at("message").as_string()).find("github_token"),
            std::string::npos);
  Ask(503, "GET", "/api/v1/github/repos/acme/widget");
  Ask(503, "GET", "/api/v1/github/rate-limit");
  Ask(400, "GET", "/api/v1/github/pull-requests/1");
  Ask(400, "GET", "/api/v1/github/pull-requests?repo=widget");
  Ask(404, "GET", "/api/v1/github/pull-requests/zero?repo=acme/widget");
  Ask(422, "POST", "/api/v1/github/pull-requests", R"({"repo":"acme/widget"})");
}

}  // namespace
}  // namespace caisson::api
