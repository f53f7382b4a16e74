// For tests: sessions on a real store, log and engine, with sandboxes that only pretend. Nobody
// answers in them: an agent cannot be started, and its message fails.
#pragma once

#include <boost/json.hpp>

#include "session/idle_watch.h"
#include "session/message_flow.h"
#include "session/sessions.h"
#include "work/agents.h"
#include "work/fake_provider.h"
#include "work/json_fields.h"
#include "work/platform_fixture.h"

namespace caisson::session {

class SessionTest : public work::PlatformTest {
 protected:
  SessionTest() : provider_(/*envd_port=*/1) {
    config_.flow_attempts = 2;
    config_.shutdown_grace_ms = 1'000;
    config_.database_url = "sqlite://" + (dir_ / "a.db");
    BeginServer();
    work::NewAgent agent{.name = "Ada", .adapter = "command"};
    agent.config = {{"command", json::array{"true"}}};
    agent_ = Wait(work::Agents(*platform_, models_).Create("ann", agent)).value().id;
  }
  ~SessionTest() override {
    EndServer();
    CloseStore();
  }

  // A server process begins (again): what the store and the provider hold stays.
  void BeginServer() {
    auto executor = io_.get_executor();
    platform_.emplace(BeginPlatform());
    sandboxes_ = std::make_unique<work::Sandboxes>(executor, config_, *store_, *log_, provider_,
                                                   "this server");
    broker_ = std::make_unique<git::Broker>(executor, config_);
    github_ = std::make_unique<forge::GitHub>(executor, config_);
    checkouts_ =
        std::make_unique<work::Checkouts>(*platform_, *sandboxes_, *broker_, locks_, *github_);
    authors_ = std::make_unique<work::Authors>(executor, *platform_, tokens_, *github_);
    desk_ =
        std::make_unique<work::GitDesk>(*platform_, *sandboxes_, *checkouts_, *github_, *authors_);
    keeper_ = std::make_unique<Keeper>(*platform_, *sandboxes_, *desk_);
    loop_ = std::make_unique<work::AgentLoop>(executor, *platform_);
    flow_ = std::make_unique<MessageFlow>(*platform_, *keeper_, *sandboxes_, *checkouts_, *desk_,
                                          *loop_, std::vector<std::string>());
    sessions_ = std::make_unique<Sessions>(executor, *platform_, *keeper_, starts_, models_);
    watch_ = std::make_unique<IdleWatch>(executor, *platform_, *keeper_, *sessions_, *sandboxes_);
    engine_->Define(flow_->DefineSession());
    engine_->Define(flow_->DefineMessage());
    EXPECT_TRUE(Wait(engine_->Start()));
  }
  void EndServer() {
    testing::Await(io_, engine_->Stop());
    testing::Await(io_, sessions_->Stop());
    testing::Await(io_, broker_->Stop());
    testing::Await(io_, sandboxes_->Stop());
    testing::Await(io_, log_->Stop());
  }

  SessionView Begin(NewSession session = {}) {
    auto made = Wait(sessions_->Create("ann", std::move(session)));
    EXPECT_TRUE(made) << made.error().message();
    return made.value_or(SessionView());
  }
  store::SessionRow RowOf(const std::string& id) {
    return Wait(sessions_->Get("ann", id)).value().row;
  }
  std::vector<store::MessageRow> MessagesOf(const std::string& id) {
    return Wait(sessions_->Messages("ann", id, 0, 100)).value().messages;
  }

  // Until `look` is true; fails the test after a while.
  void Until(const std::function<bool()>& look) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!look()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it never came true";
      testing::Await(io_, SleepFor(std::chrono::milliseconds(5)));
    }
  }
  void AwaitStatus(const std::string& id, const std::string& status) {
    Until([&] { return RowOf(id).status == status; });
  }
  // Nobody has used it for so long.
  void Age(const std::string& id, std::chrono::seconds age) {
    EXPECT_TRUE(Write([=](Tx& tx) -> Status {
      TRY_ASSIGN(auto row, tx.Need<store::SessionRow>(id, "session"));
      row.last_used_at = Now() - age;
      TRY(tx.Update(row));
      TRY(tx.Set(store::Select<work::SandboxRow>().Eq(&work::SandboxRow::holder_id, id),
                 {store::Assign(&work::SandboxRow::last_used_at, row.last_used_at)}));
      return {};
    }));
  }
  std::vector<json::object> DataOf(const std::string& type) {
    auto events = Write([type](Tx& tx) {
      return tx.List(store::Select<store::EventRow>()
                         .Eq(&store::EventRow::type, type)
                         .Order(&store::EventRow::id));
    });
    std::vector<json::object> all;
    for (const store::EventRow& event : events.value())
      all.push_back(work::ParseObject(event.data));
    return all;
  }

  work::StartLimit starts_{config_};
  work::OfferedModels models_{io_.get_executor(), config_};
  work::FakeProvider provider_;
  git::Locks locks_;
  std::optional<work::Platform> platform_;
  std::unique_ptr<work::Sandboxes> sandboxes_;
  std::unique_ptr<git::Broker> broker_;
  std::unique_ptr<forge::GitHub> github_;
  account::GithubTokens tokens_{*store_, "a secret"};
  std::unique_ptr<work::Authors> authors_;
  std::unique_ptr<work::Checkouts> checkouts_;
  std::unique_ptr<work::GitDesk> desk_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<work::AgentLoop> loop_;
  std::unique_ptr<MessageFlow> flow_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<IdleWatch> watch_;
  std::string agent_;
};

}  // namespace caisson::session
