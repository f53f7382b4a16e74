// For tests only: engines on real databases of both kinds, with steps that do what the test says.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/testing.h"
#include "flow/engine.h"
#include "store/account_rows.h"
#include "store/testing.h"

namespace caisson::flow {

using namespace std::chrono_literals;
using Handler = std::function<Task<Outcome>(StepContext)>;

class FlowTest : public store::testing::DatabaseTest {
 protected:
  std::unique_ptr<store::Store> Open(asio::io_context& io) {
    return store::OpenStore(database_.url(), io.get_executor()).value();
  }
  void Await(Task<void> task) { testing::Await(io_, std::move(task)); }
  template <class Job>
  auto Write(Job job) {
    auto done = testing::Await(io_, store_->Write(std::move(job)));
    EXPECT_TRUE(done) << done.error().message();
    return done;
  }

  FlowTest() : released_condition_(io_.get_executor()) {
    config_.flow_lease_ms = 60'000;
    config_.flow_retry_min_ms = 1;
    config_.flow_retry_max_ms = 4;
    config_.flow_max_per_agent = 0;
    store_ = Open(io_);
    Write([](store::Transaction& tx) -> Status {
      for (const char* user : {"ann", "bob"})
        TRY(tx.Insert(
            store::UserRow{.id = user, .name = user, .role = "member", .created_at = Now()}));
      return {};
    });
  }
  ~FlowTest() override {
    engines_.clear();
    // What an abandoned engine still has on the loop comes to its end.
    Await(SleepFor(1ms));
    EXPECT_TRUE(testing::Await(io_, store_->Close()));
  }

  // ---- definitions and engines

  // The definition "test" with these steps; a name that ends with "!" is one that always runs.
  void Steps(std::vector<std::string> names) {
    definition_ = {.name = "test"};
    for (std::string& name : names) {
      bool always = name.ends_with('!');
      if (always) name.pop_back();
      definition_.steps.push_back({.name = name, .timeout = 30s, .always = always});
    }
    definition_.changed = [](store::Transaction& tx, const store::RunRow& run,
                             const store::StepRow* step) -> Status {
      json::object data{{"state", step ? step->state : run.state},
                        {"step", step ? step->name : ""}};
      TRY(tx.Emit({.at = Now(), .type = "log", .run_id = run.id, .data = json::serialize(data)}));
      return {};
    };
  }
  void On(const std::string& step, std::function<Outcome(const StepContext&)> answer) {
    handlers_[step] = [answer](StepContext context) { return Answer(answer, std::move(context)); };
  }
  void Hangs(const std::string& step) {
    handlers_[step] = [this](StepContext context) { return Hang(this, std::move(context)); };
  }
  Engine& MakeEngine() {
    Definition definition = definition_;
    for (StepDefinition& step : definition.steps)
      step.run = [this](StepContext context) { return Run(this, std::move(context)); };
    engines_.push_back(std::make_unique<Engine>(io_.get_executor(), *store_, config_));
    engines_.back()->Define(std::move(definition));
    return *engines_.back();
  }
  Engine& StartEngine() {
    Engine& engine = MakeEngine();
    Status started = testing::Await(io_, engine.Start());
    EXPECT_TRUE(started) << started.error().message();
    return engine;
  }
  // Like kill -9 of its server.
  void Destroy(Engine& engine) {
    std::erase_if(engines_, [&](const auto& one) { return one.get() == &engine; });
  }

  // ---- runs

  void StartRun(Engine& engine, StartOptions options) {
    options.definition = "test";
    if (options.owner_id.empty()) options.owner_id = "ann";
    Write([&](store::Transaction& tx) { return engine.StartRun(tx, options); });
    engine.Wake();
  }
  bool Signal(Engine& engine, const std::string& key, json::object data) {
    bool woke = Write([&](store::Transaction& tx) { return engine.Signal(tx, key, data); }).value();
    engine.Wake();
    return woke;
  }
  bool Cancel(Engine& engine, const std::string& run, const std::string& reason = "enough") {
    bool asked =
        Write([&](store::Transaction& tx) { return engine.Cancel(tx, run, reason); }).value();
    engine.Wake();
    return asked;
  }
  Status Redrive(Engine& engine, const std::string& run, const std::string& step = "") {
    Status done = testing::Await(
        io_, store_->Write([&](store::Transaction& tx) { return engine.Redrive(tx, run, step); }));
    engine.Wake();
    return done;
  }
  store::RunRow Run(const std::string& id) {
    return Write([&](store::Transaction& tx) { return tx.Need<store::RunRow>(id, "run"); }).value();
  }
  store::StepRow Step(const std::string& run, const std::string& name) {
    auto select = store::Select<store::StepRow>()
                      .Eq(&store::StepRow::run_id, run)
                      .Eq(&store::StepRow::name, name);
    return Write([&](store::Transaction& tx) { return tx.First(select); })
        .value()
        .value_or(store::StepRow());
  }
  // Lets the loop run until `condition` holds; the test fails if it never does.
  void Until(std::function<bool()> condition) {
    auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it never came to that";
      Await(SleepFor(2ms));
    }
  }
  void UntilRun(const std::string& id, const std::string& state) {
    Until([&] { return Run(id).state == state; });
  }
  void UntilHanging(size_t count) {
    Until([&] { return hanging_ == count; });
  }
  // Lets the steps that hang go on; later ones do not hang.
  void Release() {
    released_ = true;
    released_condition_.Notify();
  }
  // "step:state" of every event of a run, in order.
  std::vector<std::string> Events(const std::string& run) {
    auto rows = Write([&](store::Transaction& tx) {
                  return tx.List(store::Select<store::EventRow>()
                                     .Eq(&store::EventRow::run_id, run)
                                     .Order(&store::EventRow::id));
                }).value();
    std::vector<std::string> found;
    for (const auto& row : rows) {
      json::object data = json::parse(row.data).get_object();
      found.push_back(std::string(data["step"].get_string()) + ":" +
                      std::string(data["state"].get_string()));
    }
    return found;
  }

  static Task<Outcome> Answer(std::function<Outcome(const StepContext&)> answer,
                              StepContext context) {
    co_return answer(context);
  }
  static Task<Outcome> Hang(FlowTest* test, StepContext context) {
    ++test->hanging_;
    if (!test->released_) co_await test->released_condition_.Wait(30s);
    --test->hanging_;
    if (context.canceled()) test->told_to_end_.push_back(context.step);
    if (!test->released_) co_return Outcome::Failed(Error(Code::kCanceled, "interrupted"));
    co_return Outcome::Done({{"hung", context.attempt}});
  }
  static Task<Outcome> Run(FlowTest* test, StepContext context) {
    test->calls_.push_back(context.step);
    auto handler = test->handlers_.find(context.step);
    if (handler == test->handlers_.end()) co_return Outcome::Done({{"by", context.step}});
    co_return co_await handler->second(std::move(context));
  }

  Config config_;
  std::unique_ptr<store::Store> store_;
  Definition definition_;
  std::map<std::string, Handler> handlers_;
  std::vector<std::string> calls_;        // the steps that were started, in order
  std::vector<std::string> told_to_end_;  // those that hung and whose run was canceled
  size_t hanging_ = 0;
  bool released_ = false;
  Condition released_condition_;
  std::vector<std::unique_ptr<Engine>> engines_;  // last: they use all of the above
};

}  // namespace caisson::flow
