// /api/v1/sandboxes as a client sees it, with a real envd behind a fake provider.
#include "api/sandbox_routes.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "account/accounts.h"
#include "e2b/fake_exchange.h"
#include "envd/test_program.h"
#include "sandbox/manager_fixture.h"
#include "work/fake_provider.h"

namespace caisson::api {
namespace {

using ::testing::HasSubstr;

// Also takes answers that are streamed.
class StreamExchange final : public e2b::FakeExchange {
 public:
  using FakeExchange::FakeExchange;
  Task<Status> StartStream(http::ResponseHead head, std::optional<uint64_t>,
                           std::string_view first) override {
    answer.emplace();
    static_cast<http::ResponseHead&>(*answer) = std::move(head);
    answer->body = first;
    co_return Status();
  }
  Task<Status> Write(std::string_view data) override {
    answer->body += data;
    co_return Status();
  }
  Task<Status> FinishStream(std::string_view last) override {
    answer->body += last;
    finished = true;
    co_return Status();
  }
  void Abort() override { aborted = true; }
  Task<void> ClientGone() override { co_await SleepFor(gone_after); }

  bool finished = false, aborted = false;
  std::chrono::milliseconds gone_after{60'000};
};

class SandboxRoutesTest : public sandbox::ManagerFixture {
 protected:
  SandboxRoutesTest() : provider_(port_) {
    EXPECT_EQ(program_.Answer(), "R");
    config_.file_max_bytes = 1'000'000;
    keys_ = account::KeyRing::Open(dir_.path(), kKey).value();
    StartServer();
    accounts_ =
        std::make_unique<account::Accounts>(io_.get_executor(), *store_, keys_, "secret", config_);
    EXPECT_TRUE(Wait(accounts_->Start()));
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
    Begin();
  }
  ~SandboxRoutesTest() override {
    testing::Await(io_, sandboxes_->Stop());
    testing::Await(io_, log_->Stop());
    testing::Await(io_, accounts_->Stop());
  }
  void Begin() {
    if (sandboxes_) testing::Await(io_, sandboxes_->Stop());
    frame_.reset();
    router_ = std::make_unique<http::Router>();
    frame_ = std::make_unique<Frame>(*router_, *store_, *accounts_, config_);
    frame_->CheckAnswers();
    sandboxes_ = std::make_unique<work::Sandboxes>(io_.get_executor(), config_, *store_, *log_,
                                                   provider_, "test");
    routes_ = std::make_unique<SandboxRoutes>(*sandboxes_, *manager_, config_);
    routes_->Add(*frame_);
  }

  http::Response Send(StreamExchange& exchange) {
    std::string target = exchange.request().target;
    auto match = router_->Find(exchange.request().method, target.substr(0, target.find('?')));
    EXPECT_TRUE(match.handler) << target;
    testing::Await(io_, (*match.handler)(exchange, match.params));
    EXPECT_TRUE(exchange.answer) << target;
    return exchange.answer.value_or(http::Response());
  }
  http::Response Send(const std::string& method, const std::string& target,
                      const std::string& body = "", http::Headers more = {}) {
    more.Set("X-API-KEY", key_);
    if (!more.Has("Content-Type")) more.Set("Content-Type", "application/json");
    StreamExchange exchange(io_.get_executor(), method, target, body, std::move(more));
    return Send(exchange);
  }
  json::value Ask(unsigned status, const std::string& method, const std::string& target,
                  const std::string& body = "") {
    http::Response answer = Send(method, target, body);
    EXPECT_EQ(answer.status, status) << method << " " << target << ": " << answer.body;
    return answer.body.empty() ? json::value() : json::parse(answer.body);
  }
  std::string CodeOf(unsigned status, const std::string& method, const std::string& target,
                     const std::string& body = "") {
    json::value answer = Ask(status, method, target, body);
    return std::string(answer.at("error").at("code").as_string());
  }
  std::string Made() { return std::string(Ask(201, "POST", kAll, "{}").at("id").as_string()); }
  static std::string Path(const std::string& id, const std::string& more = "") {
    return fmt::format("{}/{}{}", kAll, id, more);
  }
  // A command of the user that envd runs as here.
  static std::string Script(const std::string& text, const std::string& more = "") {
    return fmt::format(R"({{"argv":["bash","-c",{}],"user":"root"{}}})",
                       json::serialize(json::string(text)), more);
  }

  static constexpr const char* kKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  static constexpr const char* kAll = "/api/v1/sandboxes";
  std::string key_ = kKey;
  uint16_t port_ = envd::FreePort();
  envd::Program program_{{.config = json::serialize(json::object{{"sandboxId", "itest"},
                                                                 {"accessToken", "a token"},
                                                                 {"defaultUser", "root"},
                                                                 {"port", port_}})}};
  work::FakeProvider provider_;
  account::KeyRing keys_;
  std::unique_ptr<account::Accounts> accounts_;
  std::unique_ptr<events::Log> log_;
  std::unique_ptr<work::Sandboxes> sandboxes_;
  std::unique_ptr<SandboxRoutes> routes_;
  std::unique_ptr<http::Router> router_;
  std::unique_ptr<Frame> frame_;
};

TEST_F(SandboxRoutesTest, FromCreateToDelete) {
  json::value made = Ask(201, "POST", kAll,
                         R"({"metadata":{"a":"b"},"env":{"X":"y"},"timeout_s":600,
                             "repo_url":"https://example.org/a/b"})");
  EXPECT_EQ(made.at("status"), "running");
  EXPECT_EQ(made.at("repo_url"), "https://example.org/a/b");
  EXPECT_EQ(provider_.last_options.env.at("X"), "y");
  EXPECT_EQ(provider_.last_options.timeout, std::chrono::seconds(600));
  std::string id(made.at("id").as_string());
  json::value shown = Ask(200, "GET", Path(id));
  EXPECT_EQ(shown.at("backend_state"), "running");
  EXPECT_TRUE(shown.at("ends_at").is_string());
  EXPECT_EQ(Ask(200, "GET", kAll).at("total"), 1);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/admin/sandboxes").at("total"), 1);
  EXPECT_EQ(Ask(200, "POST", Path(id, "/pause")).at("status"), "paused");
  EXPECT_EQ(Ask(200, "GET", Path(id)).at("backend_state"), "paused");
  EXPECT_EQ(CodeOf(409, "POST", Path(id, "/execute"), Script("true")), "not_running");
  EXPECT_EQ(Ask(200, "POST", Path(id, "/resume")).at("status"), "running");
  Ask(204, "DELETE", Path(id));
  Ask(204, "DELETE", Path(id));
  EXPECT_EQ(Ask(200, "GET", Path(id)).at("status"), "terminated");
  EXPECT_EQ(Ask(200, "GET", std::string(kAll) + "?ended=false").at("total"), 0);
  EXPECT_EQ(CodeOf(404, "DELETE", Path("inobody")), "not_found");
  EXPECT_EQ(CodeOf(404, "GET", Path("inobody")), "not_found");
}

TEST_F(SandboxRoutesTest, WhatCannotBeMadeSaysWhy) {
  Ask(422, "POST", kAll, R"({"timeout_s":"long"})");
  EXPECT_EQ(CodeOf(404, "POST", kAll, R"({"agent_id":"nobody"})"), "not_found");
  EXPECT_EQ(CodeOf(404, "POST", kAll, R"({"task_id":"nothing"})"), "not_found");
  provider_.create_fails = Error(Code::kResourceExhausted, "your quota is used up");
  EXPECT_EQ(CodeOf(429, "POST", kAll, "{}"), "resource_exhausted");
  provider_.create_fails = Error(Code::kUnavailable, "backend_not_configured: set a key");
  EXPECT_EQ(CodeOf(503, "POST", kAll, "{}"), "backend_not_configured");
  provider_.create_fails = Error(Code::kUnauthenticated, "401");
  EXPECT_EQ(CodeOf(503, "POST", kAll, "{}"), "backend_unauthenticated");
  provider_.create_fails = Error(Code::kDeadlineExceeded, "it took too long");
  EXPECT_EQ(CodeOf(504, "POST", kAll, "{}"), "deadline_exceeded");
  EXPECT_EQ(Ask(200, "GET", std::string(kAll) + "?ended=false").at("total"), 0);
  provider_.create_fails.reset();
  provider_.room = 0;
  EXPECT_EQ(CodeOf(429, "POST", kAll, "{}"), "resource_exhausted");
  EXPECT_EQ(CodeOf(429, "POST", kAll, R"({"wait_s":1})"), "quota_wait_over");
  Ask(422, "POST", kAll, R"({"wait_s":601})");
}

TEST_F(SandboxRoutesTest, AStatusHasOtherNames) {
  std::string id = Made();
  auto count = [&](std::string word) {
    return Ask(200, "GET", std::string(kAll) + "?status=" + word).at("total").as_int64();
  };
  for (const char* word : {"running", "active", "RUNNING"}) EXPECT_EQ(count(word), 1) << word;
  for (const char* word : {"stopped", "TERMINATED", "CREATED", "provisioning", "paused"})
    EXPECT_EQ(count(word), 0) << word;
  Ask(204, "DELETE", Path(id));
  for (const char* word : {"stopped", "TERMINATED"}) EXPECT_EQ(count(word), 1) << word;
}

TEST_F(SandboxRoutesTest, ACommandHasAResult) {
  std::string id = Made();
  json::value done = Ask(200, "POST", Path(id, "/execute"),
                         Script("echo out; echo err >&2; echo $A; exit 3", R"(,"env":{"A":"b"})"));
  EXPECT_EQ(done.at("exit_code"), 3);
  EXPECT_EQ(done.at("stdout"), "out\nb\n");
  EXPECT_EQ(done.at("stderr"), "err\n");
  EXPECT_EQ(done.at("truncated"), false);
  EXPECT_EQ(done.at("timed_out"), false);
  done = Ask(504, "POST", Path(id, "/execute"), Script("sleep 60", R"(,"timeout_s":0.25)"));
  EXPECT_EQ(done.at("error").at("code"), "command_timeout");
  EXPECT_EQ(done.at("result").at("timed_out"), true);
  EXPECT_EQ(CodeOf(400, "POST", Path(id, "/execute"), Script("true", R"(,"timeout_s":301)")),
            "timeout_too_long");
  Ask(400, "POST", Path(id, "/execute"), "{\"cwd\":\"/\"}");
  Ask(400, "POST", Path(id, "/execute"), R"({"command":"a","argv":["b"]})");
  Ask(422, "POST", Path(id, "/execute"), R"({"argv":[]})");
  EXPECT_EQ(CodeOf(404, "POST", Path("inobody", "/execute"), Script("true")), "not_found");
  config_.command_policy = "deny";
  config_.command_list = "curl";
  Begin();
  EXPECT_EQ(CodeOf(422, "POST", Path(id, "/execute"), Script("curl x")), "command_refused");
}

TEST_F(SandboxRoutesTest, OutputComesLive) {
  std::string id = Made();
  http::Response answer =
      Send("POST", Path(id, "/execute"), Script("echo one; echo two >&2; exit 5"),
           {{"Accept", "text/event-stream"}});
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.headers.Value("Content-Type"), "text/event-stream");
  EXPECT_THAT(answer.body, HasSubstr(R"(event: output
data: {"stream":"stdout","output":"one\n"})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("stream":"stderr","output":"two\n")"));
  EXPECT_THAT(answer.body, HasSubstr("event: result\n"));
  EXPECT_THAT(answer.body, HasSubstr(R"("exit_code":5)"));
  answer = Send("POST", Path(id, "/execute"), R"({"argv":["no-such-program"],"user":"root"})",
                {{"Accept", "text/event-stream"}});
  EXPECT_THAT(answer.body, HasSubstr("event: error\n"));
  answer =
      Send("POST", Path("inobody", "/execute"), Script("true"), {{"Accept", "text/event-stream"}});
  EXPECT_EQ(answer.status, 404u);
}

TEST_F(SandboxRoutesTest, AClientThatGoesAwayEndsItsCommand) {
  std::string id = Made();
  for (const char* accept : {"application/json", "text/event-stream"}) {
    StreamExchange exchange(
        io_.get_executor(), "POST", Path(id, "/execute"), Script("sleep 300"),
        {{"X-API-KEY", kKey}, {"Accept", accept}, {"Content-Type", "application/json"}});
    exchange.gone_after = std::chrono::milliseconds(300);
    (void)Send(exchange);
    auto envd = Wait(provider_.Envd("admin", id));
    // Killed, and then reaped.
    EXPECT_TRUE(Until([&] { return Wait(envd->ListProcesses())->empty(); })) << accept;
  }
}

TEST_F(SandboxRoutesTest, FilesGoInAndOut) {
  std::string id = Made(), content("\0\xff binary", 9);
  std::string target = Path(id, "/files?path=" + dir_.path() + "/up/a.bin");
  auto put = [&](const std::string& where, const std::string& body) {
    return Send("PUT", where, body, {{"Content-Type", "application/octet-stream"}});
  };
  EXPECT_EQ(put(target, content).status, 204u);
  http::Response got = Send("GET", target);
  EXPECT_EQ(got.status, 200u);
  EXPECT_EQ(got.body, content);
  EXPECT_EQ(got.headers.Value("Content-Disposition"), "attachment");
  json::value list = Ask(200, "GET", Path(id, "/files/list?path=" + dir_.path() + "/up"));
  EXPECT_EQ(list.at("files").at(0).at("name"), "a.bin");
  EXPECT_EQ(list.at("files").at(0).at("size"), 9);
  EXPECT_EQ(CodeOf(404, "GET", Path(id, "/files?path=/no/such/file")), "file_not_found");
  EXPECT_EQ(CodeOf(404, "GET", Path(id, "/files/list?path=/no/such/dir")), "file_not_found");
  Ask(400, "GET", Path(id, "/files"));
  http::Response large = put(target, std::string(1'000'001, 'x'));
  EXPECT_EQ(large.status, 413u) << large.body;
  EXPECT_EQ(Send("GET", target).body, content);
}

TEST_F(SandboxRoutesTest, SomeoneElsesDoesNotExist) {
  std::string id = Made();
  auto user = Wait(accounts_->AddUser({.name = "bob", .role = "member"}));
  ASSERT_TRUE(user) << user.error().message();
  key_ = Wait(accounts_->AddKey("bob", user->id, {})).value().text;
  Ask(404, "GET", Path(id));
  Ask(404, "DELETE", Path(id));
  Ask(404, "POST", Path(id, "/pause"));
  Ask(404, "POST", Path(id, "/execute"), Script("true"));
  Ask(404, "GET", Path(id, "/files?path=/etc/passwd"));
  Ask(404, "GET", Path(id, "/files/list"));
  EXPECT_EQ(Ask(200, "GET", kAll).at("total"), 0);
  Ask(403, "GET", kAll + std::string("?all=true"));
  Ask(403, "GET", "/api/v1/admin/sandboxes");
  std::string theirs = Made();
  key_ = kKey;
  EXPECT_EQ(Ask(200, "GET", Path(id)).at("status"), "running");
  EXPECT_EQ(Ask(200, "GET", kAll).at("total"), 1);
  EXPECT_EQ(Ask(200, "GET", kAll + std::string("?all=true")).at("total"), 2);
}

}  // namespace
}  // namespace caisson::api
