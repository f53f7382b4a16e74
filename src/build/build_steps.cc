// The steps of a build. Each may be run again from its beginning.
#include <boost/json/serialize.hpp>

#include "base/encoding.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "build/build_flow.h"
#include "build/event.h"
#include "build/failure.h"
#include "build/mending.h"
#include "build/state.h"
#include "flow/crash_point.h"
#include "work/costs.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using flow::Outcome;
using flow::StepContext;
using store::BuildRow;
using store::Select;
using store::Transaction;
using work::TextOf;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kNetworkPause{10'000};
constexpr std::chrono::milliseconds kShortestSleep{1'000};

std::string SandboxAfter(const StepContext& context, const std::string& step) {
  auto found = context.results.find(step);
  return found == context.results.end() ? "" : TextOf(found->second, "sandbox_id");
}

// Where the checks went well: the first time, or after the last round of mending.
std::string SandboxAfterChecks(const StepContext& context) {
  std::string id = SandboxAfter(context, "checks");
  for (int64_t round = 1; round <= kMaxFixes; ++round)
    if (std::string last = SandboxAfter(context, MendStep(round)); !last.empty()) id = last;
  return id;
}

std::map<std::string, std::string> EnvOf(const json::object& options) {
  std::map<std::string, std::string> env;
  for (const auto& [name, value] : work::ObjectIn(options, "env"))
    if (value.is_string()) env[std::string(name)] = std::string(value.as_string());
  return env;
}

// Whether another build that is under way works in this sandbox.
Result<bool> IsTaken(Transaction& tx, const std::string& sandbox_id, const std::string& build_id) {
  TRY_ASSIGN(int64_t others, tx.Count(Select<BuildRow>()
                                          .Eq(&BuildRow::sandbox_id, sandbox_id)
                                          .NotEq(&BuildRow::id, build_id)
                                          .In(&BuildRow::state,
                                              std::vector<std::string>{"starting", "scaffold",
                                                                       "code", "deps", "checks"})));
  return others > 0;
}

}  // namespace

// ---- failures ----------------------------------------------------------------------------------

Outcome BuildFlow::FailBuild(const Scene& scene, std::string_view stage,
                             const sdk::CommandResult& result) const {
  std::string tail = scene.log->tail();
  Failure failure = ExplainFailure(stage, tail, result.exit_code, result.timed_out);
  if (tail.empty())
    tail = result.timed_out ? "it took too long"
                            : fmt::format("it ended with status {}", result.exit_code);
  return FailBuild(scene, failure, tail);
}

Outcome BuildFlow::FailBuild(const Scene& scene, const Failure& failure,
                             const std::string& message) const {
  std::string debug_id = RandomId("dbg_", 16);
  LogInfo("a build fails", {{"build_id", scene.build.id},
                            {"debug_id", debug_id},
                            {"category", failure.category},
                            {"correlation_id", scene.build.correlation_id}});
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFail;
  outcome.error_class = flow::ErrorClass::kFatal;
  outcome.error = failure.summary;
  outcome.also = [id = scene.build.id, failure, debug_id,
                  end = LastPart(message)](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
    row.error_category = failure.category;
    row.error_summary = failure.summary;
    row.error_message = end;
    row.debug_id = debug_id;
    return tx.Update(row);
  };
  return outcome;
}

// ---- starting, scaffold, code ------------------------------------------------------------------

// The sandbox of the version before is taken over, unless somebody is at work in it.
Task<Result<Outcome>> BuildFlow::Starting(StepContext, Scene scene) {
  if (!FindRunner(scene.build.runner))
    co_return FailBuild(
        scene, {"runner_failure", fmt::format("This server has no runner {}.", scene.build.runner)},
        "");
  Outcome outcome = Outcome::Done();
  outcome.also = [id = scene.build.id, parent = scene.parent,
                  workspace = platform_.config.build_workspace](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
    row.workspace_path = workspace;
    if (parent && !parent->sandbox_id.empty() && row.sandbox_id.empty()) {
      TRY_ASSIGN(bool taken, IsTaken(tx, parent->sandbox_id, id));
      if (!taken) row.sandbox_id = parent->sandbox_id;
    }
    return tx.Update(row);
  };
  co_return outcome;
}

Task<Status> BuildFlow::Open(Scene& scene) {
  std::string origin = TextOf(scene.options, "snapshot");
  if (origin.empty() && scene.parent) origin = scene.parent->snapshot_id;
  CO_TRY_ASSIGN(std::string id,
                co_await workbench_.Open({.owner_id = scene.build.owner_id,
                                          .build_id = scene.build.id,
                                          .project = scene.build.project,
                                          .sandbox_id = scene.build.sandbox_id,
                                          .snapshot = origin,
                                          .template_name = TextOf(scene.options, "template")}));
  std::string workspace = workbench_.WorkspaceIn(id);
  if (id != scene.build.sandbox_id || workspace != scene.build.workspace_path) {
    // At once: whoever cleans up has to know it.
    scene.build.sandbox_id = id;
    scene.build.workspace_path = workspace;
    CO_TRY(co_await platform_.store.Write([=, build = scene.build.id](Transaction& tx) {
      return tx.Set(Select<BuildRow>().Eq(&BuildRow::id, build),
                    {store::Assign(&BuildRow::sandbox_id, id),
                     store::Assign(&BuildRow::workspace_path, workspace)});
    }));
  }
  if (!scene.parent || scene.parent->sandbox_id != id) co_return Status();
  co_return co_await workbench_.Remember(PlaceOf(scene.build));
}

// Only a runner that works in the sandbox needs it this early: files that are wrong cost none.
Task<Result<Outcome>> BuildFlow::Scaffold(StepContext, Scene scene) {
  if (!FindRunner(scene.build.runner)->needs_sandbox()) co_return Outcome::Done();
  CO_TRY(co_await Open(scene));
  CO_TRY(co_await workbench_.Put(PlaceOf(scene.build), scene.parent_files, {}));
  co_return Outcome::Done({{"sandbox_id", scene.build.sandbox_id}});
}

RunnerJob BuildFlow::JobOf(const Scene& scene) const {
  return {.build_id = scene.build.id,
          .owner_id = scene.build.owner_id,
          .project = scene.build.project,
          .goal = scene.build.goal,
          .files = scene.parent_files,
          .options = scene.options,
          .sandbox_id = scene.build.sandbox_id,
          .workspace = scene.build.workspace_path,
          .log = [log = scene.log](std::string_view source, std::string_view text) {
            if (source == "system") return log->Say(text);
            log->Take(source == "stderr" ? sdk::Stream::kStderr : sdk::Stream::kStdout, text);
          }};
}

Task<Result<std::optional<Outcome>>> BuildFlow::Ask(const Scene& scene, RunnerJob job,
                                                    Draft& draft) {
  Files before = job.files;
  auto result = co_await WithDeadline(
      std::chrono::milliseconds(platform_.config.build_runner_timeout_s * 1000), "the runner",
      runners_.at(scene.build.runner)->Run(std::move(job)));
  if (!result) {
    bool again = flow::Classify(result.error()) == flow::ErrorClass::kTransient;
    if (again) co_return tl::unexpected(std::move(result).error());
    co_return FailBuild(scene, {"runner_failure", result.error().message()},
                        result.error().message());
  }
  if (result->sleeps_until) co_return co_await Sleep(scene, *result->sleeps_until);
  auto files = Apply(std::move(before), result->changes);
  Status checked = files ? CheckFiles(*files, platform_.config) : Status();
  if (!files || !checked) {
    std::string why = files ? checked.error().message() : files.error().message();
    co_return FailBuild(scene, {"invalid_files", why}, why);
  }
  scene.log->Say(fmt::format("{}, {}", Counted(files->size(), "file"),
                             Counted(result->changes.size(), "change")));
  draft = {.files = std::move(*files),
           .changes = result->changes.size(),
           .cost = {.id = RandomUuid(),
                    .owner_id = scene.build.owner_id,
                    .kind = "model",
                    .model = result->model,
                    .tokens_in = result->tokens_in,
                    .tokens_out = result->tokens_out,
                    .at = Now()}};
  co_return std::nullopt;
}

Task<Result<std::optional<Outcome>>> BuildFlow::Sleep(const Scene& scene, Time until) {
  scene.log->Say("The day's budget is used up; the agent sleeps until " + FormatTime(until));
  CO_TRY(co_await workbench_.Pause(PlaceOf(scene.build)));
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Now());
  // Only time wakes it: nobody sends what it waits for.
  co_return Outcome::Wait("sleep:" + scene.build.id, std::max(wait, kShortestSleep));
}

Status BuildFlow::Keep(Transaction& tx, const std::string& build_id, const Draft& draft) {
  TRY(StoreFiles(tx, build_id, draft.files));
  if (draft.cost.tokens_in + draft.cost.tokens_out > 0)
    TRY(work::RecordCost(tx, platform_, draft.cost));
  return {};
}

Task<Result<Outcome>> BuildFlow::Code(StepContext, Scene scene) {
  Runner& runner = *runners_.at(scene.build.runner);
  if (runner.needs_sandbox()) CO_TRY(co_await Open(scene));
  RunnerJob job = JobOf(scene);
  if (runner.name() == "files") {
    // What the caller gave is stored as the whole version already.
    job.files.clear();
    json::object given;
    for (const auto& [path, content] : scene.files) {
      if (IsText(content))
        given[path] = content;
      else
        given[path] = json::object{{"new_content_base64", Base64Encode(content)}};
    }
    job.options["files"] = std::move(given);
  }
  Draft draft;
  CO_TRY_ASSIGN(auto failed, co_await Ask(scene, std::move(job), draft));
  if (failed) co_return std::move(*failed);
  Outcome outcome = Outcome::Done({{"files", draft.files.size()}, {"changes", draft.changes}});
  outcome.also = [this, id = scene.build.id, draft = std::move(draft)](Transaction& tx) {
    return Keep(tx, id, draft);
  };
  co_return outcome;
}

// ---- deps, checks ------------------------------------------------------------------------------

sdk::Command BuildFlow::CommandOf(const json::object& options, const Place& place, int64_t port,
                                  const std::string& line) const {
  sdk::Command command;
  command.argv = {"/bin/bash", "-lc", line};
  command.cwd = place.workspace;
  command.env = {{"HOST", "0.0.0.0"},
                 {"BROWSER", "none"},
                 // Development servers refuse names that they do not know.
                 {"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS",
                  "." + platform_.config.domain.substr(0, platform_.config.domain.find(':'))}};
  if (port > 0) command.env["PORT"] = std::to_string(port);
  for (const auto& [name, value] : EnvOf(options)) command.env[name] = value;
  return command;
}

Task<Result<sdk::CommandResult>> BuildFlow::RunLine(const Scene& scene, std::string name,
                                                    std::string line, int64_t timeout_s) {
  scene.log->Say("$ " + line);
  sdk::Command command = CommandOf(scene.options, PlaceOf(scene.build), scene.build.port, line);
  command.timeout = std::chrono::seconds(timeout_s);
  command.on_output = [log = scene.log](sdk::Stream stream, std::string_view piece) {
    log->Take(stream, piece);
  };
  auto result = co_await workbench_.Run(PlaceOf(scene.build), std::move(name), std::move(command));
  scene.log->EndOfOutput();
  co_return result;
}

Task<Result<sdk::CommandResult>> BuildFlow::InstallWith(const Scene& scene, size_t index,
                                                        Packages packages) {
  int64_t timeout = platform_.config.build_install_timeout_s;
  CO_TRY_ASSIGN(auto result,
                co_await RunLine(scene, fmt::format("{}install-{}", scene.errand, index),
                                 packages.install_command, timeout));
  if (result.exit_code == 0 || !IsNetworkFailure(result.stdout_text + result.stderr_text))
    co_return result;
  scene.log->Say("The network let the installation down; it is tried once more.");
  co_await SleepFor(kNetworkPause);
  co_return co_await RunLine(scene, fmt::format("{}install-{}-again", scene.errand, index),
                             packages.install_command, timeout);
}

Task<Result<std::optional<Outcome>>> BuildFlow::Prepare(Scene& scene, std::string known) {
  CO_TRY(co_await Open(scene));
  if (scene.build.sandbox_id == known) co_return std::nullopt;
  CO_TRY(co_await workbench_.Put(PlaceOf(scene.build), scene.files,
                                 Missing(scene.parent_files, scene.files)));
  auto all = DetectPackages(scene.files);
  if (std::string line = TextOf(scene.options, "install_command"); !line.empty())
    all = {{.manager = "custom", .install_command = line}};
  if (all.empty()) scene.log->Say("There is nothing to install.");
  for (size_t i = 0; i < all.size(); ++i) {
    CO_TRY_ASSIGN(auto result, co_await InstallWith(scene, i, all[i]));
    if (result.exit_code != 0) co_return FailBuild(scene, "deps", result);
  }
  co_return std::nullopt;
}

Task<Result<Outcome>> BuildFlow::Install(StepContext, Scene scene) {
  CO_TRY_ASSIGN(auto failed, co_await Prepare(scene, ""));
  if (failed) co_return std::move(*failed);
  co_return Outcome::Done({{"sandbox_id", scene.build.sandbox_id}});
}

Task<Result<Outcome>> BuildFlow::Check(StepContext context, Scene scene) {
  CO_TRY_ASSIGN(auto failed, co_await Prepare(scene, SandboxAfter(context, "deps")));
  if (failed) co_return std::move(*failed);
  co_return co_await RunChecks(scene, 0);
}

Task<Result<Outcome>> BuildFlow::RunChecks(Scene& scene, int64_t round) {
  std::vector<std::string> lines = scene.options.contains("checks")
                                       ? work::TextsOf(scene.options, "checks")
                                       : DetectChecks(scene.files);
  for (size_t i = 0; i < lines.size(); ++i) {
    CO_TRY_ASSIGN(auto result, co_await RunLine(scene, fmt::format("{}check-{}", scene.errand, i),
                                                lines[i], platform_.config.build_check_timeout_s));
    if (result.exit_code != 0) co_return ChecksFailed(scene, round, lines[i], result);
  }
  co_return Outcome::Done({{"sandbox_id", scene.build.sandbox_id}, {"checks", lines.size()}});
}

// ---- serve -------------------------------------------------------------------------------------

Task<Result<std::string>> BuildFlow::StartAndWait(Place place, sdk::Command command, int64_t port,
                                                  LogWriter& log) {
  log.Say("$ " + command.argv.back());
  CO_TRY(co_await workbench_.StartServer(place, std::move(command), port));
  CO_TRY_ASSIGN(std::string url, co_await workbench_.UrlOf(place, port));
  auto end = Clock::now() + std::chrono::seconds(platform_.config.build_ready_timeout_s);
  std::string seen = "nothing answers";
  for (;;) {
    auto head = co_await workbench_.Fetch(url);
    if (head && head->status < 500) break;
    seen = head ? fmt::format("it answers {}", head->status) : head.error().message();
    CO_TRY_ASSIGN(ServerState server, co_await workbench_.AskServer(place));
    bool late = Clock::now() > end;
    if (server.running && !late) {
      co_await SleepFor(std::chrono::milliseconds(platform_.config.build_ready_interval_ms));
      continue;
    }
    log.Take(sdk::Stream::kStdout, server.output);
    log.EndOfOutput();
    auto around = co_await workbench_.Diagnose(place, port);
    for (std::string_view line : Split(around ? *around : around.error().message(), '\n'))
      if (!line.empty()) log.Say(line);
    if (!server.running)
      co_return Fail(Code::kAborted, "the server ended with status {}", server.exit_code);
    co_return Fail(Code::kDeadlineExceeded, "the preview was not ready after {} s: {}",
                   platform_.config.build_ready_timeout_s, seen);
  }
  log.Say("The preview answers at " + url);
  co_return url;
}

// Best effort: a version without one is brought back from its files.
Task<Status> BuildFlow::KeepSnapshot(Scene& scene) {
  if (!scene.build.snapshot_id.empty()) co_return Status();
  auto made = co_await workbench_.Snapshot(PlaceOf(scene.build));
  if (!made) {
    scene.log->Say("There is no snapshot of this version: " + made.error().message());
    co_return Status();
  }
  flow::CrashPoint().Reached("serve", "after_snapshot");
  scene.build.snapshot_id = *made;
  CO_TRY(co_await platform_.store.Write([name = *made, id = scene.build.id](Transaction& tx) {
    return tx.Set(Select<BuildRow>().Eq(&BuildRow::id, id),
                  {store::Assign(&BuildRow::snapshot_id, name)});
  }));
  co_return Status();
}

Task<Result<Outcome>> BuildFlow::Serve(StepContext context, Scene scene) {
  CO_TRY_ASSIGN(auto failed, co_await Prepare(scene, SandboxAfterChecks(context)));
  if (failed) co_return std::move(*failed);
  Framework framework = DetectFramework(scene.files);
  if (std::string line = TextOf(scene.options, "start_command"); !line.empty())
    framework.start_command = line;
  if (int64_t port = work::IntOf(scene.options, "port"); port > 0) framework.port = port;
  scene.build.framework = framework.name;
  scene.build.start_command = framework.start_command;
  scene.build.port = framework.port;
  Place place = PlaceOf(scene.build);
  auto url = co_await StartAndWait(
      place, CommandOf(scene.options, place, framework.port, framework.start_command),
      framework.port, *scene.log);
  if (!url &&
      (url.error().code() == Code::kAborted || url.error().code() == Code::kDeadlineExceeded)) {
    scene.log->Say(url.error().message());
    co_return FailBuild(
        scene, "serve",
        {.exit_code = 1, .timed_out = url.error().code() == Code::kDeadlineExceeded});
  }
  if (!url) co_return tl::unexpected(std::move(url).error());
  CO_TRY(co_await KeepSnapshot(scene));
  co_return Ready(scene, *url);
}

Outcome BuildFlow::Ready(const Scene& scene, const std::string& url) const {
  Outcome outcome = Outcome::Done({{"sandbox_id", scene.build.sandbox_id}, {"preview_url", url}});
  outcome.also = [this, made = scene.build, url](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(made.id, "build"));
    TRY_ASSIGN(int64_t last, LastNumber(tx, row));
    row.number = last + 1;
    row.framework = made.framework;
    row.start_command = made.start_command;
    row.port = made.port;
    row.preview_url = url;
    row.completed_at = Now();
    row.viewing_until = *row.completed_at + std::chrono::seconds(platform_.config.build_viewing_s);
    row.error_category = row.error_message = row.error_summary = row.debug_id = "";
    // The version before was shown at the same place: its time is over.
    TRY(tx.Set(
        Select<BuildRow>().Eq(&BuildRow::sandbox_id, row.sandbox_id).NotEq(&BuildRow::id, row.id),
        {store::Assign(&BuildRow::viewing_until, std::optional<Time>())}));
    TRY(Move(tx, row, "ready"));
    TRY(platform_.log.Emit(
        tx, About(row, "documentation.updated", {{"url", "/api/v1/builds/" + row.id + "/docs"}})));
    if (row.parent_id.empty()) return {};
    TRY(platform_.log.Emit(
        tx, About(row, "iteration_completed",
                  {{"build_version", VersionName(row.number)}, {"change_description", row.goal}})));
    return {};
  };
  return outcome;
}

// ---- finish ------------------------------------------------------------------------------------

Task<Result<BuildRow>> BuildFlow::Restore(BuildRow build, std::string sandbox_id,
                                          std::string errand, LogWriter& log) {
  CO_TRY_ASSIGN(Files files, co_await platform_.store.Read(
                                 [id = build.id](Transaction& tx) { return FilesOf(tx, id); }));
  json::object options = work::ParseObject(build.options);
  Scene scene{
      .build = build, .files = files, .options = options, .errand = std::move(errand), .log = &log};
  scene.build.sandbox_id = sandbox_id;
  scene.options["snapshot"] = build.snapshot_id;
  CO_TRY_ASSIGN(auto failed, co_await Prepare(scene, ""));
  if (failed) co_return Fail(Code::kAborted, "{}", failed->error);
  Place place = PlaceOf(scene.build);
  CO_TRY_ASSIGN(
      std::string url,
      co_await StartAndWait(place, CommandOf(options, place, build.port, build.start_command),
                            build.port, log));
  co_return co_await ShowAgain(build.id, scene.build.sandbox_id, url);
}

Task<Status> BuildFlow::Restart(BuildRow build, LogWriter& log) {
  Place place = PlaceOf(build);
  json::object options = work::ParseObject(build.options);
  CO_TRY_ASSIGN(
      std::string url,
      co_await StartAndWait(place, CommandOf(options, place, build.port, build.start_command),
                            build.port, log));
  CO_TRY(co_await ShowAgain(build.id, build.sandbox_id, url));
  co_return Status();
}

Task<Result<BuildRow>> BuildFlow::ShowAgain(std::string build_id, std::string sandbox_id,
                                            std::string url) {
  co_return co_await platform_.store.Write(
      [this, build_id, sandbox_id, url](Transaction& tx) -> Result<BuildRow> {
        TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(build_id, "build"));
        row.sandbox_id = sandbox_id;
        row.preview_url = url;
        row.preview_note = "";
        row.viewing_until = Now() + std::chrono::seconds(platform_.config.build_viewing_s);
        TRY(tx.Update(row));
        TRY(platform_.log.Emit(tx, About(row, "build_updated", BuildData(row))));
        return row;
      });
}

// A server that was killed may have made one that the row does not know.
Task<Status> BuildFlow::ForgetSnapshot(const Scene& scene) {
  CO_TRY(co_await workbench_.DropSnapshot(PlaceOf(scene.build)));
  if (scene.build.snapshot_id.empty()) co_return Status();
  CO_TRY(co_await platform_.store.Write([id = scene.build.id](Transaction& tx) {
    return tx.Set(Select<BuildRow>().Eq(&BuildRow::id, id),
                  {store::Assign(&BuildRow::snapshot_id, std::string())});
  }));
  co_return Status();
}

Task<Result<BuildRow>> BuildFlow::RestoreInPlace(const Scene& scene, std::string errand) {
  CO_TRY(co_await workbench_.EndCommands(PlaceOf(scene.build)));
  CO_TRY_ASSIGN(auto missing, co_await workbench_.Undo(PlaceOf(scene.build)));
  for (const std::string& path : missing)
    if (!scene.parent_files.contains(path))
      co_return Fail(Code::kFailedPrecondition, "{} is missing, which only the snapshot has", path);
  co_return co_await Restore(*scene.parent, scene.build.sandbox_id, std::move(errand), *scene.log);
}

// Of a build that failed or was canceled: a sandbox of its own goes, the one of the version before
// becomes again what it was.
Task<Status> BuildFlow::CleanUp(const StepContext& context, Scene scene) {
  const BuildRow& build = scene.build;
  CO_TRY(co_await ForgetSnapshot(scene));
  if (build.sandbox_id.empty()) co_return Status();
  bool shared = scene.parent && scene.parent->sandbox_id == build.sandbox_id;
  if (!shared) co_return co_await workbench_.Destroy(PlaceOf(build), "the build failed");
  // The state alone does not tell: mending goes back to where nothing was done yet.
  const Runner* runner = FindRunner(build.runner);
  bool early = runner && runner->needs_sandbox()
                   ? !context.results.contains("scaffold")
                   : !context.results.contains("deps") && build.state != "deps";
  if (early) co_return Status();
  std::string version = VersionName(scene.parent->number);
  std::string errand = "after-" + build.id + "-";
  auto restored = co_await RestoreInPlace(scene, errand);
  if (!restored) {
    scene.log->Say(fmt::format("{} could not be restored in its sandbox ({}); a new one is made.",
                               version, restored.error().message()));
    (void)co_await workbench_.Destroy(PlaceOf(build), "it could not be restored");
    restored = co_await Restore(*scene.parent, "", errand, *scene.log);
  }
  if (!restored) co_return tl::unexpected(std::move(restored).error());
  scene.log->Say(fmt::format("The version before, {}, is back.", version));
  CO_TRY(co_await platform_.store.Write([id = build.id, parent = build.parent_id](Transaction& tx) {
    return tx.Set(Select<BuildRow>().Eq(&BuildRow::id, id),
                  {store::Assign(&BuildRow::restored_id, parent)});
  }));
  co_return Status();
}

Task<Result<Outcome>> BuildFlow::Finish(StepContext context, Scene scene) {
  if (!context.results.contains("serve")) {
    CO_TRY(co_await CleanUp(context, std::move(scene)));
    co_return Outcome::Done();
  }
  std::string file = picture_ ? co_await picture_(scene.build) : "";
  Outcome outcome = Outcome::Done({{"screenshot", !file.empty()}});
  if (file.empty()) co_return outcome;
  outcome.also = [this, id = scene.build.id, file](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
    row.screenshot = file;
    TRY(tx.Update(row));
    TRY(platform_.log.Emit(
        tx, About(row, "snapshot.updated", {{"url", "/api/v1/builds/" + id + "/screenshot"}})));
    return {};
  };
  co_return outcome;
}

}  // namespace caisson::build
