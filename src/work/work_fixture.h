// For tests: the rules on a real store, log and engine, with a workshop that only pretends.
#pragma once

#include <boost/json.hpp>

#include "work/fake_workshop.h"
#include "work/json_fields.h"
#include "work/platform_fixture.h"
#include "work/task_flow.h"
#include "work/work.h"

namespace caisson::work {

class WorkTest : public PlatformTest {
 protected:
  WorkTest() {
    workshop_.store = store_.get();
    BeginServer();
  }
  ~WorkTest() override {
    EndServer();
    CloseStore();
  }

  // A server process begins (again): what the store holds stays. Runs go on only if it `works`.
  void BeginServer(bool works = true) {
    Platform platform = BeginPlatform();
    flow_ = std::make_unique<TaskFlow>(platform, workshop_, std::vector<std::string>{"anthropic"});
    engine_->Define(flow_->Define());
    work_ = std::make_unique<Work>(io_.get_executor(), platform);
    if (works) EXPECT_TRUE(Wait(engine_->Start()));
  }
  void EndServer() {
    testing::Await(io_, engine_->Stop());
    testing::Await(io_, log_->Stop());
    testing::Await(io_, work_->outside_agents.Stop());
    testing::Await(io_, work_->start_queue.Stop());
    work_.reset();
    engine_.reset();
    flow_.reset();
    log_.reset();
  }

  store::AgentRow Agent(const std::string& name, const std::string& adapter = "command") {
    NewAgent agent{.name = name, .adapter = adapter};
    if (adapter == "command") agent.config = {{"command", json::array{"true"}}};
    return Wait(work_->agents.Create("ann", agent)).value();
  }
  NewTask ATask(const std::string& title = "Mend the fence") {
    return {.title = title, .repo_url = "https://github.com/acme/garden"};
  }
  std::string AddTask(NewTask task) {
    auto made = Wait(work_->tasks.Create("ann", std::move(task)));
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->row.id : "";
  }
  store::TaskRow TaskOf(const std::string& id) {
    return Wait(work_->tasks.Get("ann", id)).value().row;
  }
  Execution ExecutionOf(const std::string& id) {
    return Wait(work_->executions.Get("ann", id)).value();
  }
  Result<Started> Start(const std::string& task_id, const std::string& agent_id = "") {
    return Wait(work_->tasks.Start({.owner_id = "ann", .task_id = task_id, .agent_id = agent_id}));
  }

  // Until the execution has one of these states; fails the test after a while.
  store::ExecutionRow Await(const std::string& execution_id, std::vector<std::string> states) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      store::ExecutionRow row = ExecutionOf(execution_id).row;
      if (std::ranges::find(states, row.status) != states.end()) return row;
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "the execution is still " << row.status << " " << row.error;
        return row;
      }
      Wait(Pause());
    }
  }

  // Types of events, or the data of those of one type, in order.
  std::vector<store::EventRow> Events(const std::string& type = "") {
    return Write([type](Tx& tx) {
             store::Select<store::EventRow> select;
             if (!type.empty()) select.Eq(&store::EventRow::type, type);
             return tx.List(select.Order(&store::EventRow::id));
           })
        .value();
  }
  std::vector<json::object> DataOf(const std::string& type) {
    std::vector<json::object> all;
    for (const store::EventRow& event : Events(type)) all.push_back(ParseObject(event.data));
    return all;
  }

  FakeWorkshop workshop_;
  std::unique_ptr<TaskFlow> flow_;
  std::unique_ptr<Work> work_;
};

}  // namespace caisson::work
