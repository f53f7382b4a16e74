#include "build/build_flow.h"

#include <array>

#include "base/encoding.h"
#include "base/id.h"
#include "base/log.h"
#include "build/event.h"
#include "build/failure.h"
#include "build/mending.h"
#include "build/state.h"
#include "work/json_fields.h"
#include "work/run_home.h"

namespace caisson::build {
namespace {

using flow::Outcome;
using store::BuildFileRow;
using store::BuildRow;
using store::RunRow;
using store::Select;
using store::StepRow;
using store::Transaction;
using work::TextOf;

// The state that a build has while a step runs ("" = the step changes none), and how its part of
// the log begins.
struct Stage {
  std::string_view step, state, title;
};
constexpr std::array kStages = {
    Stage{"starting", "starting", "Starting"},
    Stage{"scaffold", "scaffold", "Scaffolding workspace"},
    Stage{"code", "code", "Writing code"},
    Stage{"deps", "deps", "Installing dependencies"},
    Stage{"checks", "checks", "Running checks"},
    Stage{"serve", "checks", "Starting the server"},
    Stage{"finish", "", "Finishing"},
};

const Stage& StageOf(std::string_view step) {
  const auto* found = std::ranges::find(kStages, step, &Stage::step);
  return found == kStages.end() ? kStages.back() : *found;
}

std::string BuildIdOf(const RunRow& run) {
  return TextOf(work::ParseObject(run.input), "build_id");
}

// Its own one, or that of the version before.
Result<std::vector<store::WorkSandboxRow>> SandboxesOf(Transaction& tx, const RunRow& run) {
  TRY_ASSIGN(auto rows, work::SandboxesOf(tx, "build", {BuildIdOf(run)}));
  TRY_ASSIGN(auto build, tx.Get<BuildRow>(BuildIdOf(run)));
  if (!build || build->sandbox_id.empty()) return rows;
  TRY_ASSIGN(auto before, tx.Get<store::WorkSandboxRow>(build->sandbox_id));
  if (before && !before->destroyed_at) rows.push_back(std::move(*before));
  return rows;
}

}  // namespace

// ---- files of versions -------------------------------------------------------------------------

Result<Files> FilesOf(Transaction& tx, const std::string& build_id) {
  TRY_ASSIGN(auto rows, tx.List(Select<BuildFileRow>().Eq(&BuildFileRow::build_id, build_id)));
  Files files;
  for (BuildFileRow& row : rows) {
    auto content = row.encoding.empty() ? std::move(row.content) : Base64Decode(row.content);
    if (!content) return Fail(Code::kDataLoss, "the file {} of a version is broken", row.path);
    files[row.path] = std::move(*content);
  }
  return files;
}

Status StoreFiles(Transaction& tx, const std::string& build_id, const Files& files) {
  TRY(tx.Delete(Select<BuildFileRow>().Eq(&BuildFileRow::build_id, build_id)));
  for (const auto& [path, content] : files) {
    bool text = IsText(content);
    TRY(tx.Insert(BuildFileRow{.id = build_id + "/" + path,
                               .build_id = build_id,
                               .path = path,
                               .encoding = text ? "" : "base64",
                               .content = text ? content : Base64Encode(content)}));
  }
  return {};
}

std::vector<std::string> Missing(const Files& before, const Files& after) {
  std::vector<std::string> missing;
  for (const auto& [path, content] : before)
    if (!after.contains(path)) missing.push_back(path);
  return missing;
}

Result<int64_t> LastNumber(Transaction& tx, const BuildRow& of) {
  TRY_ASSIGN(auto last, tx.First(Select<BuildRow>()
                                     .Eq(&BuildRow::owner_id, of.owner_id)
                                     .Eq(&BuildRow::project, of.project)
                                     .Order(&BuildRow::number, true)));
  return last ? last->number : 0;
}

Place PlaceOf(const BuildRow& build) {
  return {.owner_id = build.owner_id,
          .build_id = build.id,
          .sandbox_id = build.sandbox_id,
          .workspace = build.workspace_path};
}

Status EndBuild(Transaction& tx, events::Log& log, BuildRow& build, std::string category,
                std::string message, std::string summary) {
  if (IsTerminal(build.state)) return {};
  build.completed_at = Now();
  build.error_category = std::move(category);
  build.error_message = std::move(message);
  build.error_summary = std::move(summary);
  if (build.debug_id.empty()) build.debug_id = RandomId("dbg_", 16);
  TRY(MoveTo(tx, build, "failed"));
  TRY(log.Emit(tx, About(build, "build_updated", BuildData(build))));
  return {};
}

// ---- the definition ----------------------------------------------------------------------------

BuildFlow::BuildFlow(work::Platform platform, Workbench& workbench, BuildLogs& logs,
                     BuildQueue& queue, const Runners& runners, TakePicture picture)
    : platform_(platform),
      workbench_(workbench),
      logs_(logs),
      queue_(queue),
      runners_(runners),
      picture_(std::move(picture)) {}

flow::StepDefinition BuildFlow::Make(std::string name, Step step, std::chrono::seconds timeout) {
  flow::StepDefinition made;
  made.name = std::move(name);
  made.timeout = timeout;
  made.run = [this, step](flow::StepContext context) { return Run(step, std::move(context)); };
  return made;
}

flow::Definition BuildFlow::Define() {
  const Config& config = platform_.config;
  using std::chrono::seconds;
  seconds create(config.create_timeout_ms * 4 / 1000 + 60);
  seconds runner(config.build_runner_timeout_s + 60);
  // Each of them may come twice, and its files have to be written.
  seconds install(config.build_install_timeout_s * 4 + 300);
  seconds check(config.build_check_timeout_s * 4 + 60);
  seconds serve(config.build_ready_timeout_s + config.save_timeout_ms / 1000 + 60);
  flow::Definition definition{.name = "build", .version = kVersion};
  definition.steps = {Make("starting", &BuildFlow::Starting, create),
                      Make("scaffold", &BuildFlow::Scaffold, create + install),
                      Make("code", &BuildFlow::Code, create + runner),
                      Make("deps", &BuildFlow::Install, create + install),
                      Make("checks", &BuildFlow::Check, create + install + check)};
  for (int64_t round = 1; round <= kMaxFixes; ++round)
    definition.steps.push_back(
        Make(MendStep(round), &BuildFlow::Mend, create + runner + install + check));
  definition.steps.push_back(Make("serve", &BuildFlow::Serve, create + install + serve));
  definition.steps.push_back(Make("finish", &BuildFlow::Finish, create + install + serve));
  definition.steps.back().always = true;
  definition.finished = [this](Transaction& tx, const RunRow& run) { return Finished(tx, run); };
  work::SetHome(definition, platform_.log, SandboxesOf);
  definition.changed = [this](Transaction& tx, const RunRow& run, const StepRow* step) {
    return Changed(tx, run, step);
  };
  return definition;
}

const Runner* BuildFlow::FindRunner(const std::string& name) const {
  auto found = runners_.find(name);
  return found == runners_.end() ? nullptr : found->second.get();
}

Result<BuildFlow::Scene> BuildFlow::Load(Transaction& tx, const flow::StepContext& context) const {
  Scene scene;
  TRY_ASSIGN(scene.build, tx.Need<BuildRow>(TextOf(context.input, "build_id"), "build"));
  if (IsTerminal(scene.build.state) && context.step != "finish")
    return Fail(Code::kFailedPrecondition, "the build is over: it is {}; start another one",
                scene.build.state);
  if (!scene.build.parent_id.empty()) {
    TRY_ASSIGN(scene.parent, tx.Get<BuildRow>(scene.build.parent_id));
    TRY_ASSIGN(scene.parent_files, FilesOf(tx, scene.build.parent_id));
  }
  TRY_ASSIGN(scene.files, FilesOf(tx, scene.build.id));
  scene.options = work::ParseObject(scene.build.options);
  return scene;
}

Task<Outcome> BuildFlow::Run(Step step, flow::StepContext context) {
  int64_t round = RoundOf(context.step);
  if (round > 0 && FailureBefore(context, round).empty()) co_return Outcome::Done();
  auto scene =
      co_await platform_.store.Read([this, context](Transaction& tx) { return Load(tx, context); });
  if (!scene) co_return Outcome::Failed(scene.error());
  std::string title = round > 0 ? MendTitle(round, FixesOf(scene->options))
                                : std::string(StageOf(context.step).title);
  auto log = co_await logs_.Open(scene->build.id, scene->build.state, title);
  if (!log) co_return Outcome::Failed(log.error());
  scene->log = log->get();
  BuildRow build = scene->build;
  auto outcome = co_await (this->*step)(context, std::move(*scene));
  if (outcome) {
    co_await (*log)->Flush();
    co_return std::move(*outcome);
  }
  LogInfo("a step of a build failed",
          {{"build_id", build.id}, {"step", context.step}, {"error", outcome.error().message()}});
  (*log)->Say(outcome.error().message());
  co_await (*log)->Flush();
  Outcome failed = Outcome::Failed(outcome.error());
  // Nobody is asked to mend a build: they start another one.
  if (failed.error_class == flow::ErrorClass::kUserAction)
    failed.error_class = flow::ErrorClass::kFatal;
  co_return failed;
}

// ---- what changes with the run -----------------------------------------------------------------

Status BuildFlow::Move(Transaction& tx, BuildRow& build, std::string_view to) const {
  TRY(MoveTo(tx, build, to));
  TRY(platform_.log.Emit(tx, About(build, "build_updated", BuildData(build))));
  return {};
}

Status BuildFlow::Changed(Transaction& tx, const RunRow& run, const StepRow* step) {
  if (!step) return {};
  TRY_ASSIGN(auto build, tx.Get<BuildRow>(BuildIdOf(run)));
  std::string_view state = StageOf(step->name).state;
  if (!build || state.empty()) return {};
  json::object data{{"stage", state}, {"stage_label", StageLabel(state)}};
  if (step->state == "done" && step->name != "checks") {
    if (step->started_at && step->finished_at)
      data["duration_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(
                                *step->finished_at - *step->started_at)
                                .count();
    TRY(platform_.log.Emit(tx, About(*build, "build.stage.completed", std::move(data))));
    return {};
  }
  // A step that is begun again finds its state already there.
  if (step->state != "running" || !MayFollow(build->state, state)) return {};
  if (!build->started_at) build->started_at = Now();
  TRY(Move(tx, *build, state));
  TRY(platform_.log.Emit(tx, About(*build, "build.stage.started", std::move(data))));
  return {};
}

Status BuildFlow::Finished(Transaction& tx, const RunRow& run) {
  TRY_ASSIGN(auto build, tx.Get<BuildRow>(BuildIdOf(run)));
  if (build && !IsTerminal(build->state)) {
    bool canceled = run.state == "canceled";
    Failure failure{.category = build->error_category, .summary = build->error_summary};
    if (canceled)
      failure = {.category = "canceled", .summary = "The build was canceled."};
    else if (failure.category.empty())
      failure = ExplainFailure(build->state, run.error, 0, /*timed_out=*/false);
    std::string message = build->error_message.empty() ? run.error : build->error_message;
    if (canceled) message = run.cancel_reason;
    TRY(EndBuild(tx, platform_.log, *build, failure.category, message, failure.summary));
  }
  return queue_.Advance(tx);
}

}  // namespace caisson::build
