// For tests: builds on a real store, log and engine, with a workbench that only pretends and a
// runner that does what it is told.
#pragma once

#include <boost/json.hpp>

#include "build/build_flow.h"
#include "build/builds.h"
#include "build/event.h"
#include "build/fake_workbench.h"
#include "build/previews.h"
#include "store/sandbox_rows.h"
#include "work/json_fields.h"
#include "work/platform_fixture.h"

namespace caisson::build {

class FakeRunner final : public Runner {
 public:
  std::string_view name() const override { return "llm"; }
  Task<Result<RunnerResult>> Run(RunnerJob job) override {
    jobs.push_back(job);
    if (fails) co_return tl::unexpected(*fails);
    job.log("system", "thinking");
    co_return RunnerResult{.changes = job.failure.empty() ? changes : mended,
                           .model = "m-1",
                           .tokens_in = tokens,
                           .tokens_out = tokens};
  }

  std::optional<Error> fails;
  int64_t tokens = 0;  // in, and as many out
  std::vector<FileChange> changes = {{.path = "index.html", .new_content = "<h1>one</h1>"}};
  std::vector<FileChange> mended;  // when it is told of a failure
  std::vector<RunnerJob> jobs;
};

class BuildTest : public work::PlatformTest {
 protected:
  using BuildRow = store::BuildRow;

  explicit BuildTest(std::function<void(Config&)> configure = {}) {
    config_.build_ready_interval_ms = 1;
    config_.build_tier = "none";
    if (configure) configure(config_);
    auto runner = std::make_unique<FakeRunner>();
    runner_ = runner.get();
    runners_["llm"] = std::move(runner);
    runners_["files"] = MakeFilesRunner();
    BeginServer();
  }
  ~BuildTest() override {
    EndServer();
    CloseStore();
  }

  // A server process begins (again): what the store holds stays.
  void BeginServer() {
    auto executor = io_.get_executor();
    work::Platform platform = BeginPlatform();
    logs_ = std::make_unique<BuildLogs>(executor, *store_, config_, log_->redactor());
    queue_ = std::make_unique<BuildQueue>(config_, *engine_, ParseTiers(config_).value());
    flow_ = std::make_unique<BuildFlow>(platform, workbench_, *logs_, *queue_, runners_, nullptr);
    builds_ = std::make_unique<Builds>(platform, *queue_, starts_);
    removals_ = std::make_unique<Removals>(platform, workbench_, "");
    previews_ = std::make_unique<Previews>(executor, platform, workbench_, *builds_, *flow_,
                                           *queue_, *logs_, *removals_);
    engine_->Define(flow_->Define());
    EXPECT_TRUE(Wait(engine_->Start()));
  }
  void EndServer() {
    testing::Await(io_, engine_->Stop());
    testing::Await(io_, previews_->Stop());
    testing::Await(io_, logs_->Stop());
    testing::Await(io_, log_->Stop());
    previews_.reset();
    removals_.reset();
    builds_.reset();
    engine_.reset();
    flow_.reset();
    queue_.reset();
    logs_.reset();
    log_.reset();
  }

  Result<BuildView> Create(NewBuild build, const std::string& owner = "ann") {
    if (build.project.empty()) build.project = "shop";
    if (build.runner.empty() && !build.files) build.runner = "llm";
    return Wait(builds_->Create(owner, std::move(build)));
  }
  BuildRow Row(const std::string& id) {
    return Write([id](Tx& tx) { return tx.Need<BuildRow>(id, "build"); }).value();
  }
  // Until the build and everything after it are over; fails the test after a while.
  BuildRow Await(const std::string& id) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      auto part = Wait(builds_->FollowLog("", id, 0));
      if (part && part->over) return Row(id);
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "the build is still " << Row(id).state;
        return Row(id);
      }
      Wait(Pause());
    }
  }
  BuildRow Build(NewBuild build) {
    auto made = Create(std::move(build));
    EXPECT_TRUE(made) << made.error().message();
    return made ? Await(made->row.id) : BuildRow();
  }
  std::vector<std::string> LogOf(const std::string& id) {
    std::vector<std::string> texts;
    auto rows = Write([id](Tx& tx) { return LinesFrom(tx, "", id, 0, 10'000); }).value();
    for (const auto& row : rows) texts.push_back(row.text);
    return texts;
  }
  std::vector<json::object> DataOf(const std::string& type, const std::string& build_id) {
    auto rows = Write([=](Tx& tx) {
                  return tx.List(store::Select<store::EventRow>()
                                     .Eq(&store::EventRow::type, type)
                                     .Eq(&store::EventRow::build_id, build_id)
                                     .Order(&store::EventRow::id));
                }).value();
    std::vector<json::object> all;
    for (const auto& row : rows) all.push_back(work::ParseObject(row.data));
    return all;
  }
  // The platform's row of a sandbox, which the fake does not write.
  void AddSandboxRow(const std::string& id, const std::string& status) {
    EXPECT_TRUE(Write([=](Tx& tx) {
      return tx.Insert(store::WorkSandboxRow{.id = id,
                                             .provider = "local",
                                             .backend_id = id,
                                             .owner_id = "ann",
                                             .holder_kind = "build",
                                             .status = status,
                                             .created_at = Now(),
                                             .last_used_at = Now()});
    }));
  }

  work::StartLimit starts_{config_};
  FakeWorkbench workbench_;
  FakeRunner* runner_ = nullptr;
  Runners runners_;
  std::unique_ptr<BuildLogs> logs_;
  std::unique_ptr<BuildQueue> queue_;
  std::unique_ptr<BuildFlow> flow_;
  std::unique_ptr<Builds> builds_;
  std::unique_ptr<Removals> removals_;
  std::unique_ptr<Previews> previews_;
};

}  // namespace caisson::build
