#include "api/run_routes.h"

#include "api/frame_fixture.h"

namespace caisson::api {
namespace {

using namespace std::chrono_literals;
using flow::Outcome;
using flow::StepContext;

class RunRoutesTest : public FrameFixture {
 protected:
  RunRoutesTest() {
    config_.flow_retry_min_ms = config_.flow_retry_max_ms = 1;
    BeginServer();
    ann_ = KeyOf("ann", "member");
    for (const store::UserRow& user : accounts_->ListUsers())
      if (user.name == "ann") ann_id_ = user.id;
  }
  ~RunRoutesTest() override {
    testing::Await(io_, engine_->Stop());
    engine_.reset();
    EndServer();
    EXPECT_TRUE(testing::Await(io_, store_->Close()));
  }
  void AddRoutes(Frame& frame) override {
    engine_ = std::make_unique<flow::Engine>(io_.get_executor(), *store_, config_);
    flow::Definition definition{.name = "test"};
    for (const char* name : {"one", "two"})
      definition.steps.push_back(
          {.name = name, .run = [this](StepContext context) { return Step(this, context.step); }});
    engine_->Define(std::move(definition));
    ASSERT_TRUE(Wait(engine_->Start()));
    routes_ = std::make_unique<RunRoutes>(*store_, *engine_);
    routes_->Add(frame);
  }
  static Task<Outcome> Step(RunRoutesTest* test, std::string name) {
    if (name == "two" && !test->outcomes_.empty()) {
      Outcome next = test->outcomes_.front();
      test->outcomes_.erase(test->outcomes_.begin());
      co_return next;
    }
    co_return Outcome::Done({{"by", name}});
  }
  void StartRun(const std::string& id, std::vector<Outcome> outcomes) {
    outcomes_ = std::move(outcomes);
    auto done = Wait(store_->Write([&](store::Transaction& tx) {
      return engine_->StartRun(tx, {.id = id, .definition = "test", .owner_id = ann_id_});
    }));
    ASSERT_TRUE(done) << done.error().message();
    engine_->Wake();
  }
  json::value Get(const std::string& id) { return Ask(200, "GET", "/api/v1/runs/" + id, "", ann_); }
  json::value Until(const std::string& id, const char* state) {
    auto deadline = std::chrono::steady_clock::now() + 60s;
    for (;;) {
      json::value run = Get(id);
      if (run.at("state") == state || std::chrono::steady_clock::now() > deadline) return run;
      testing::Await(io_, SleepFor(2ms));
    }
  }

  std::unique_ptr<flow::Engine> engine_;
  std::unique_ptr<RunRoutes> routes_;
  std::vector<Outcome> outcomes_;  // of the next attempts of the step "two"
  std::string ann_, ann_id_;
};

TEST_F(RunRoutesTest, ShowsARunAndItsSteps) {
  StartRun("r1", {Outcome::Failed(Error(Code::kUnavailable, "not now"))});
  json::value run = Until("r1", "succeeded");
  ASSERT_EQ(run.at("state"), "succeeded");
  EXPECT_EQ(run.at("definition"), "test");
  EXPECT_EQ(run.at("result").at("by"), "two");
  EXPECT_TRUE(run.at("duration_ms").is_int64());
  ASSERT_EQ(run.at("steps").as_array().size(), 2);
  EXPECT_EQ(run.at("steps").at(0).at("retries"), 0);
  EXPECT_EQ(run.at("steps").at(1).at("retries"), 1);
  EXPECT_EQ(run.at("steps").at(1).at("state"), "done");
}

TEST_F(RunRoutesTest, ShowsHowLongARunMayWaitForItsStart) {
  StartRun("r1", {});
  EXPECT_TRUE(Until("r1", "succeeded").at("queue_expires_at").is_null());
  Time expires = Now() + 1h;
  auto queued = Wait(store_->Write([&](store::Transaction& tx) {
    return tx.Insert(store::RunRow{.id = "r2",
                                   .definition = "test",
                                   .owner_id = ann_id_,
                                   .created_at = Now(),
                                   .queue_expires_at = expires});
  }));
  ASSERT_TRUE(queued) << queued.error().message();
  EXPECT_EQ(Get("r2").at("queue_expires_at"), json::value(FormatTime(expires)));
}

TEST_F(RunRoutesTest, ListsByStateAndPage) {
  StartRun("r1", {});
  Until("r1", "succeeded");
  StartRun("r2", {Outcome::Failed(Error(Code::kInvalidArgument, "no"))});
  Until("r2", "failed");
  auto list = [&](const std::string& query, const std::string& key) {
    std::string ids;
    json::value found = Ask(200, "GET", "/api/v1/runs" + query, "", key);
    for (const auto& run : found.at("runs").as_array())
      ids += std::string(run.at("id").as_string()) + " ";
    return ids;
  };
  EXPECT_EQ(list("", ann_), "r2 r1 ");
  EXPECT_EQ(list("?state=failed", ann_), "r2 ");
  EXPECT_EQ(list("?state=failed&state=succeeded&limit=1&offset=1", ann_), "r1 ");
  EXPECT_EQ(list("?definition=other", ann_), "");
  EXPECT_EQ(list("?task_id=t1", ann_), "");
  EXPECT_EQ(list("", kAdminKey), "");
  EXPECT_EQ(list("?all=true", kAdminKey), "r2 r1 ");
  Ask(403, "GET", "/api/v1/runs?all=true", "", ann_);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/runs?limit=1", "", ann_).at("total"), 2);
  Ask(422, "GET", "/api/v1/runs?state=odd", "", ann_);
}

TEST_F(RunRoutesTest, ARunOfSomebodyElseDoesNotExist) {
  StartRun("r1", {});
  Until("r1", "succeeded");
  std::string bob = KeyOf("bob", "member");
  Ask(404, "GET", "/api/v1/runs/r1", "", bob);
  for (const char* action : {"retry", "cancel", "signal"})
    Ask(404, "POST", "/api/v1/runs/r1/" + std::string(action), "{}", bob);
  Ask(404, "GET", "/api/v1/runs/r9", "", ann_);
  Ask(403, "POST", "/api/v1/runs/r1/cancel", "{}", KeyOf("eve", "viewer"));
}

TEST_F(RunRoutesTest, RetriesADeadRun) {
  StartRun("r1", {Outcome::Failed(Error(Code::kInternal, "no"))});
  EXPECT_EQ(Until("r1", "dead").at("error"), "no");
  Ask(409, "POST", "/api/v1/runs/r1/retry", R"({"step":"nowhere"})", ann_);
  EXPECT_EQ(Ask(200, "POST", "/api/v1/runs/r1/retry", "", ann_).at("state"), "queued");
  EXPECT_EQ(Until("r1", "succeeded").at("error"), "");
  Ask(409, "POST", "/api/v1/runs/r1/retry", "{}", ann_);
}

TEST_F(RunRoutesTest, CancelsARun) {
  StartRun("r1", {Outcome::Wait("key", 1h)});
  Until("r1", "waiting");
  json::value run = Ask(200, "POST", "/api/v1/runs/r1/cancel", R"({"reason":"enough"})", ann_);
  EXPECT_EQ(run.at("state"), "canceled");
  EXPECT_EQ(run.at("cancel_reason"), "enough");
  Ask(200, "POST", "/api/v1/runs/r1/cancel", "", ann_);
  StartRun("r2", {});
  Until("r2", "succeeded");
  Ask(409, "POST", "/api/v1/runs/r2/cancel", "", ann_);
}

TEST_F(RunRoutesTest, AnswersARunThatWaits) {
  StartRun("r1", {Outcome::Failed(Error(Code::kUnauthenticated, "who are you?"))});
  EXPECT_EQ(Until("r1", "waiting").at("error_class"), "user_action");
  Ask(200, "POST", "/api/v1/runs/r1/signal", "{}", ann_);
  Until("r1", "succeeded");
  Ask(409, "POST", "/api/v1/runs/r1/signal", "{}", ann_);

  StartRun("r2", {Outcome::Wait("key", 1h)});
  Until("r2", "waiting");
  StartRun("r3", {Outcome::Wait("other", 1h)});
  Until("r3", "waiting");
  Ask(409, "POST", "/api/v1/runs/r2/signal", R"({"key":"other"})", ann_);
  Ask(200, "POST", "/api/v1/runs/r2/signal", R"({"key":"key","data":{"n":1}})", ann_);
  EXPECT_EQ(Until("r2", "succeeded").at("state"), "succeeded");
  EXPECT_EQ(Get("r3").at("state"), "waiting");
}

}  // namespace
}  // namespace caisson::api
