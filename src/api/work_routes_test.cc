#include "api/work_routes.h"

#include "api/frame_fixture.h"
#include "api/run_routes.h"
#include "base/text.h"
#include "work/fake_workshop.h"
#include "work/task_flow.h"

namespace caisson::api {
namespace {

// The routes on the real rules, with a workshop that only pretends. The frame checks every answer
// against its schema.
class WorkRoutesTest : public FrameFixture {
 protected:
  WorkRoutesTest() { BeginServer(); }
  ~WorkRoutesTest() override { StopWork(); }
  void StopWork() {
    testing::Await(io_, engine_->Stop());
    testing::Await(io_, log_->Stop());
  }
  void AddRoutes(Frame& frame) override {
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    ASSERT_TRUE(Wait(log_->Start()));
    engine_ = std::make_unique<flow::Engine>(io_.get_executor(), *store_, config_);
    work::Platform platform{*store_, *log_, *engine_, config_};
    flow_ = std::make_unique<work::TaskFlow>(platform, workshop_, std::vector<std::string>());
    engine_->Define(flow_->Define());
    work_ = std::make_unique<work::Work>(io_.get_executor(), platform);
    ASSERT_TRUE(Wait(engine_->Start()));
    AddWorkRoutes(frame, *work_);
    runs_ = std::make_unique<RunRoutes>(*store_, *engine_);
    runs_->Add(frame);
  }

  json::object Agent(const std::string& name) {
    return Ask(201, "POST", "/api/v1/agents",
               R"({"name":")" + name + R"(","config":{"command":["true"],"env":{"K":"secret"}}})")
        .as_object();
  }
  static std::string Id(const json::value& value) {
    return std::string(value.at("id").as_string());
  }
  json::object AwaitRun(const std::string& id, const std::string& state) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      json::object run = Ask(200, "GET", "/api/v1/runs/" + id).as_object();
      std::string now = run.at("state").as_string().c_str();
      if (now == state || std::chrono::steady_clock::now() > deadline) {
        EXPECT_EQ(now, state);
        return run;
      }
      testing::Await(io_, SleepFor(std::chrono::milliseconds(5)));
    }
  }

  work::FakeWorkshop workshop_;
  std::unique_ptr<events::Log> log_;
  std::unique_ptr<flow::Engine> engine_;
  std::unique_ptr<work::TaskFlow> flow_;
  std::unique_ptr<work::Work> work_;
  std::unique_ptr<RunRoutes> runs_;
};

TEST_F(WorkRoutesTest, Agents) {
  std::string id = Id(Agent("Ada"));
  json::value shown = Ask(200, "GET", "/api/v1/agents/" + id);
  // What a person put there is not shown to everybody who may read.
  EXPECT_EQ(shown.at("config").at("env").at("K"), "***");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/agents?text=ad&limit=1").at("total"), 1);
  EXPECT_EQ(Ask(200, "PATCH", "/api/v1/agents/" + id, R"({"paused":true})").at("status"), "paused");
  Ask(422, "POST", "/api/v1/agents", R"({"name":"x","adapter":"command"})");
  Ask(422, "POST", "/api/v1/agents", R"({"adapter":"command"})");
  Ask(404, "GET", "/api/v1/agents/nobody");
  EXPECT_EQ(Send("DELETE", "/api/v1/agents/" + id).status, 204);
}

TEST_F(WorkRoutesTest, TasksFromTextToReviewAndBack) {
  std::string agent = Id(Agent("Ada"));
  json::value started = Ask(202, "POST", "/api/v1/agents/" + agent + "/start-task",
                            R"({"title":"Mend it","repo_url":"acme/garden",
                                "options":{"labels":["a"],"draft":true}})");
  std::string task(started.at("task_id").as_string());
  json::object run = AwaitRun(std::string(started.at("run_id").as_string()), "succeeded");
  EXPECT_EQ(run.at("steps").as_array().size(), 8);
  json::value shown = Ask(200, "GET", "/api/v1/tasks/" + task);
  EXPECT_EQ(shown.at("status"), "in_review");
  EXPECT_EQ(shown.at("pull_request_state"), "draft");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/tasks/" + task + "/pull-request").at("number"), 7);
  std::string execution(started.at("execution_id").as_string());
  EXPECT_EQ(Ask(200, "GET", "/api/v1/executions/" + execution).at("steps").as_array().size(), 8);
  Ask(200, "GET", "/api/v1/tasks/" + task + "/operations");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/tasks?status=in_review&priority=medium").at("total"), 1);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/costs?task_id=" + task).at("total"), 1);

  Ask(422, "POST", "/api/v1/tasks/" + task + "/move", R"({"status":"in_progress"})");
  json::value moved = Ask(200, "POST", "/api/v1/tasks/" + task + "/move",
                          R"({"status":"in_progress","feedback":"bolder"})");
  EXPECT_EQ(moved.at("status"), "in_progress");
  json::value executions = Ask(200, "GET", "/api/v1/tasks/" + task + "/executions");
  EXPECT_EQ(executions.at("total"), 2);
  for (const json::value& one : executions.at("executions").as_array())
    AwaitRun(std::string(one.at("run_id").as_string()), "succeeded");
  EXPECT_EQ(Ask(200, "PATCH", "/api/v1/tasks/" + task, R"({"status":"done","priority":"high"})")
                .at("priority"),
            "high");
  EXPECT_EQ(Send("DELETE", "/api/v1/tasks/" + task).status, 204);
}

TEST_F(WorkRoutesTest, BoardSquadsAndCosts) {
  std::string agent = Id(Agent("Ada"));
  std::string task =
      Id(Ask(201, "POST", "/api/v1/tasks", R"({"title":"t","repo_url":"acme/garden"})"));
  json::value board = Ask(200, "GET", "/api/v1/board");
  EXPECT_EQ(board.at("columns").as_array().size(), 7);
  EXPECT_EQ(board.at("columns").at(1).at("count"), 1);
  EXPECT_EQ(board.at("wip").at("free_agents"), 1);
  Ask(409, "POST", "/api/v1/tasks/" + task + "/start");
  EXPECT_EQ(Ask(202, "POST", "/api/v1/tasks/" + task + "/cancel").at("status"), "canceled");
  std::string squad = Id(Ask(201, "POST", "/api/v1/squads",
                             R"({"name":"S","members":[{"agent_id":")" + agent + R"("}]})"));
  EXPECT_EQ(Ask(200, "POST", "/api/v1/squads/" + squad + "/pause").at("paused"), true);
  EXPECT_EQ(Ask(200, "POST", "/api/v1/squads/" + squad + "/resume").at("paused"), false);
  Ask(200, "PATCH", "/api/v1/squads/" + squad, R"({"members":[]})");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/squads").at("total"), 1);
  Ask(200, "GET", "/api/v1/squads/" + squad + "/approvals");
  Ask(200, "GET", "/api/v1/approvals?state=pending");
  Ask(404, "POST", "/api/v1/approvals/none/approve");
  EXPECT_EQ(Send("DELETE", "/api/v1/squads/" + squad).status, 204);
  Ask(200, "GET", "/api/v1/costs/stats?by=agent");
  EXPECT_EQ(
      Ask(200, "GET", "/api/v1/costs/summary?period=week&count=3").at("sums").as_array().size(), 3);
  Ask(200, "GET", "/api/v1/costs/budget");
  Ask(422, "GET", "/api/v1/costs?from=yesterday");
  Ask(200, "GET", "/api/v1/runs?state=failed");
  Ask(404, "GET", "/api/v1/runs/none");
}

TEST_F(WorkRoutesTest, MembersShowWhereTheyWorkAndExecutionsWhatTheyCommitted) {
  std::string agent = Id(Agent("Ada"));
  json::value made =
      Ask(201, "POST", "/api/v1/squads",
          R"({"name":"S","repo_url":"acme/garden","members":[{"agent_id":")" + agent + R"("}]})");
  EXPECT_TRUE(made.at("members").at(0).at("git_context").is_null());
  std::string squad = Id(made);
  workshop_.hold_agent = true;
  std::string task = Id(Ask(201, "POST", "/api/v1/tasks",
                            R"({"title":"t","base_branch":"next","squad_id":")" + squad + R"("})"));
  json::value started = Ask(202, "POST", "/api/v1/tasks/" + task + "/start");
  auto member = [&] {
    return Ask(200, "GET", "/api/v1/squads/" + squad).at("members").at(0).as_object();
  };
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (workshop_.Count("agent") == 0 && std::chrono::steady_clock::now() < deadline)
    testing::Await(io_, SleepFor(std::chrono::milliseconds(5)));
  json::object shown = member();
  EXPECT_EQ(shown.at("current_task_id").as_string(), task);
  EXPECT_EQ(shown.at("sandbox_id"), "sandbox-1");
  EXPECT_EQ(shown.at("git_context").at("repo_url"), "acme/garden");
  EXPECT_EQ(shown.at("git_context").at("base_branch"), "next");
  EXPECT_EQ(shown.at("git_context").at("git_branch").as_string(), "task-" + task);
  EXPECT_EQ(shown.at("git_context").at("pull_request_url"), "");
  workshop_.hold_agent = false;
  AwaitRun(std::string(started.at("run_id").as_string()), "succeeded");
  shown = member();
  EXPECT_TRUE(shown.at("git_context").is_null());
  EXPECT_EQ(shown.at("sandbox_id"), "");
  json::value execution =
      Ask(200, "GET", "/api/v1/tasks/" + task + "/executions").at("executions").at(0);
  EXPECT_EQ(execution.at("git_branch").as_string(), "task-" + task);
  EXPECT_EQ(execution.at("pull_request_url"), "https://github.com/acme/garden/pull/7");
  ASSERT_EQ(execution.at("commit_history").as_array().size(), 1u);
  EXPECT_EQ(execution.at("commit_history").at(0).at("sha"), "head1");
  EXPECT_EQ(execution.at("commit_history").at(0).at("message").as_string(),
            workshop_.last_commit.message);
}

TEST_F(WorkRoutesTest, OutsideAgents) {
  std::string agent =
      Id(Ask(201, "POST", "/api/v1/agents", R"({"name":"Far","adapter":"external"})"));
  std::string path = "/api/v1/agents/" + agent;
  EXPECT_EQ(Send("POST", path + "/claim", R"({"wait_s":0})").status, 204);
  Ask(201, "POST", "/api/v1/tasks", R"({"title":"t","agent_id":")" + agent + R"("})");
  json::value claimed = Ask(200, "POST", path + "/claim", R"({"wait_s":0})");
  EXPECT_EQ(claimed.at("task").at("title"), "t");
  EXPECT_EQ(Send("POST", path + "/heartbeat").status, 204);
  std::string execution = Id(claimed.at("execution"));
  EXPECT_EQ(Ask(200, "POST", path + "/report",
                R"({"status":"succeeded","summary":"did it","usage":{"tokens_in":3},
                    "execution_id":")" +
                    execution + R"("})")
                .at("status"),
            "succeeded");
}

TEST_F(WorkRoutesTest, WorkflowsHaveTheirOldSpelling) {
  std::string agent = Id(Agent("Ada"));
  std::string task = Id(Ask(201, "POST", "/api/v1/tasks", R"({"title":"t"})"));
  json::value started = Ask(202, "POST", "/api/v1/sandboxes/workflows/execute",
                            R"({"task_id":")" + task + R"(","agent_id":")" + agent +
                                R"(","repo_url":"acme/garden","commit_message":"feat: mend it"})");
  EXPECT_EQ(started.at("status"), "workflow_started");
  AwaitRun(std::string(started.at("run_id").as_string()), "succeeded");
  EXPECT_EQ(workshop_.last_commit.message, "feat: mend it");
}

TEST_F(WorkRoutesTest, TooManyStartsAreToldWhenToTryAgain) {
  config_.start_rate_limit = 1;
  frame_->SetRates(
      {.admit = [](const std::string&) { return Status(); },
       .retry_after =
           [this](const std::string& user_id) { return work_->starts.RetryAfter(user_id); }});
  auto start = [&](const std::string& agent, const std::string& key) {
    return Send("POST", "/api/v1/agents/" + agent + "/start-task",
                R"({"title":"Mend it","repo_url":"acme/garden"})",
                {{"X-API-KEY", kAdminKey}, {"Idempotency-Key", key}});
  };
  std::string ada = Id(Agent("Ada")), grace = Id(Agent("Grace"));
  EXPECT_EQ(start(ada, "one").status, 202);
  EXPECT_EQ(start(ada, "one").status, 202);  // the same one again
  http::Response refused = start(grace, "two");
  EXPECT_EQ(refused.status, 429);
  auto wait = ParseInt<int64_t>(std::string(refused.headers.Value("Retry-After")));
  ASSERT_TRUE(wait);
  EXPECT_GT(*wait, 1);
  EXPECT_LE(*wait, 60);
  EXPECT_EQ(json::parse(refused.body).at("error").at("code"), "resource_exhausted");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/tasks").at("total"), 1);
}

// As if the server had been killed when the work was done and its answer was not written down.
TEST_F(WorkRoutesTest, WhatACrashLeftWithoutAnswerIsNotMadeTwice) {
  auto post = [&](const std::string& path, const std::string& body, const std::string& key) {
    http::Response answer =
        Send("POST", "/api/v1" + path, body, {{"X-API-KEY", kAdminKey}, {"Idempotency-Key", key}});
    EXPECT_LT(answer.status, 300u) << answer.body;
    EXPECT_FALSE(answer.headers.Has("Idempotency-Replayed"));
    return json::parse(answer.body);
  };
  const std::string agent_body = R"({"name":"Ada","config":{"command":["true"]}})";
  const std::string squad_body = R"({"name":"S"})", task_body = R"({"title":"t"})";
  const std::string work_body = R"({"title":"Mend it","repo_url":"acme/garden"})";
  std::string agent = Id(post("/agents", agent_body, "agent"));
  std::string squad = Id(post("/squads", squad_body, "squad"));
  std::string task = Id(post("/tasks", task_body, "task"));
  json::value started = post("/agents/" + agent + "/start-task", work_body, "start");
  AwaitRun(std::string(started.at("run_id").as_string()), "succeeded");
  std::string again = "/tasks/" + std::string(started.at("task_id").as_string()) + "/start";
  json::value second = post(again, "{}", "again");
  AwaitRun(std::string(second.at("run_id").as_string()), "succeeded");

  ASSERT_EQ(Wait(store_->Write([](store::Transaction& tx) {
              return tx.Set(store::Select<store::IdempotencyRow>(),
                            {store::Assign(&store::IdempotencyRow::status, 0),
                             store::Assign(&store::IdempotencyRow::body, "")});
            })).value(),
            5);
  StopWork();
  EndServer();
  BeginServer();
  EXPECT_EQ(Id(post("/agents", agent_body, "agent")), agent);
  EXPECT_EQ(Id(post("/squads", squad_body, "squad")), squad);
  EXPECT_EQ(Id(post("/tasks", task_body, "task")), task);
  EXPECT_EQ(post("/agents/" + agent + "/start-task", work_body, "start").at("execution_id"),
            started.at("execution_id"));
  EXPECT_EQ(post(again, "{}", "again").at("execution_id"), second.at("execution_id"));
  EXPECT_EQ(Ask(200, "GET", "/api/v1/agents").at("total"), 1);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/squads").at("total"), 1);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/tasks").at("total"), 2);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/runs").at("total"), 2);
  // Another key makes another one.
  EXPECT_NE(Id(post("/tasks", task_body, "another")), task);
}

TEST_F(WorkRoutesTest, AnAdminSeesEverybodysOthersDoNot) {
  std::string mia = KeyOf("mia", "member");
  Ask(201, "POST", "/api/v1/agents", R"({"name":"Ada","config":{"command":["true"]}})", mia);
  Ask(201, "POST", "/api/v1/squads", R"({"name":"S"})", mia);
  Ask(201, "POST", "/api/v1/tasks", R"({"title":"t"})", mia);
  Ask(201, "POST", "/api/v1/tasks", R"({"title":"u"})");
  for (std::string kind : {"agents", "squads", "tasks"}) {
    std::string path = "/api/v1/" + kind;
    int64_t own = kind == "tasks" ? 1 : 0;
    EXPECT_EQ(Ask(200, "GET", path).at("total"), own) << kind;
    EXPECT_EQ(Ask(200, "GET", path + "?all=false").at("total"), own) << kind;
    json::value all = Ask(200, "GET", path + "?all=true");
    EXPECT_EQ(all.at("total"), own + 1) << kind;
    std::set<std::string> owners;
    for (const json::value& one : all.at(kind).as_array())
      owners.emplace(one.at("owner_id").as_string());
    EXPECT_EQ(owners.size(), static_cast<size_t>(own + 1)) << kind;
    EXPECT_EQ(Ask(403, "GET", path + "?all=true", "", mia).at("error").at("code"),
              "permission_denied");
    EXPECT_EQ(Ask(200, "GET", path + "?all=false", "", mia).at("total"), 1) << kind;
  }
}

TEST_F(WorkRoutesTest, ViewersOnlyLook) {
  http::Headers viewer{{"X-API-KEY", KeyOf("vera", "viewer")}};
  EXPECT_EQ(Send("GET", "/api/v1/tasks", "", viewer).status, 200);
  EXPECT_EQ(Send("POST", "/api/v1/tasks", R"({"title":"t"})", viewer).status, 403);
  // Somebody else's things are not there.
  std::string task = Id(Ask(201, "POST", "/api/v1/tasks", R"({"title":"t"})"));
  EXPECT_EQ(Send("GET", "/api/v1/tasks/" + task, "", viewer).status, 404);
}

}  // namespace
}  // namespace caisson::api
