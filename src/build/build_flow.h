// The workflow of a build: starting, scaffold, code, deps, checks, mend-1 ... mend-5, serve,
// finish. docs/builds.md tells what each step does, and why doing it twice does no harm.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "build/build_log.h"
#include "build/failure.h"
#include "build/framework.h"
#include "build/queue.h"
#include "build/runner.h"
#include "build/workbench.h"
#include "flow/engine.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::build {

using Runners = std::map<std::string, std::unique_ptr<Runner>>;  // by name
// Takes a picture of a preview and gives the name of its file, "" if there is none.
using TakePicture = std::function<Task<std::string>(store::BuildRow build)>;

class BuildFlow {
 public:
  static constexpr int64_t kVersion = 2;

  // All outlive it.
  BuildFlow(work::Platform platform, Workbench& workbench, BuildLogs& logs, BuildQueue& queue,
            const Runners& runners, TakePicture picture);

  // For flow::Engine::Define(); refers to this object.
  flow::Definition Define();

  // Brings back what `build` was when it was ready: its files, its server, its preview. In
  // `sandbox_id` if that lives, else in a new one from its snapshot. The build as stored then.
  // `errand`: what it is done for, another text each time it shall really be done.
  Task<Result<store::BuildRow>> Restore(store::BuildRow build, std::string sandbox_id,
                                        std::string errand, LogWriter& log);
  // The server of a build that is ready is started anew where it is, and answers.
  Task<Status> Restart(store::BuildRow build, LogWriter& log);

 private:
  // What a step knows of its build.
  struct Scene {
    store::BuildRow build;
    std::optional<store::BuildRow> parent;
    Files files, parent_files;
    boost::json::object options;
    std::string errand;  // before the names of its commands, if they are not the build's own
    LogWriter* log = nullptr;
  };
  using Step = Task<Result<flow::Outcome>> (BuildFlow::*)(flow::StepContext, Scene);

  flow::StepDefinition Make(std::string name, Step step, std::chrono::seconds timeout);
  Task<flow::Outcome> Run(Step step, flow::StepContext context);
  Result<Scene> Load(store::Transaction& tx, const flow::StepContext& context) const;

  Task<Result<flow::Outcome>> Starting(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Scaffold(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Code(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Install(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Check(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Mend(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Serve(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Finish(flow::StepContext context, Scene scene);

  const Runner* FindRunner(const std::string& name) const;
  // The build's sandbox, running; its row says which. What lies in that of the version before is
  // remembered.
  Task<Status> Open(Scene& scene);
  // The same with the files in it and their packages installed, unless `known` is it: then they
  // are. What went wrong with the installation is an outcome.
  Task<Result<std::optional<flow::Outcome>>> Prepare(Scene& scene, std::string known);
  // What the runner made of a job.
  struct Draft {
    Files files;
    size_t changes = 0;
    store::CostRow cost;
  };
  RunnerJob JobOf(const Scene& scene) const;
  // Asks the runner. What is wrong with its work is an outcome.
  Task<Result<std::optional<flow::Outcome>>> Ask(const Scene& scene, RunnerJob job, Draft& draft);
  // Until then the runner's agent has nothing to spend: the sandbox is put away, the step waits.
  Task<Result<std::optional<flow::Outcome>>> Sleep(const Scene& scene, Time until);
  Status Keep(store::Transaction& tx, const std::string& build_id, const Draft& draft);
  // The checks, one after the other; `round`: how often it was mended before.
  Task<Result<flow::Outcome>> RunChecks(Scene& scene, int64_t round);
  // The runner may try to mend it if there are rounds left; else the build fails.
  flow::Outcome ChecksFailed(const Scene& scene, int64_t round, const std::string& line,
                             const sdk::CommandResult& result) const;
  // Has the runner mend what `failure` tells, as far as that is not done.
  Task<Result<std::optional<flow::Outcome>>> Rewrite(Scene& scene, int64_t round,
                                                     std::string failure);
  // From the state that the scene knows to the next, together with `also`.
  Task<Status> Enter(Scene& scene, std::string to, std::function<Status(store::Transaction&)> also);
  Task<Result<sdk::CommandResult>> RunLine(const Scene& scene, std::string name, std::string line,
                                           int64_t timeout_s);
  // How installing with one package manager ended; one more try if the network was to blame.
  Task<Result<sdk::CommandResult>> InstallWith(const Scene& scene, size_t index, Packages packages);
  // Starts the server and waits for the preview; the URL.
  Task<Result<std::string>> StartAndWait(Place place, sdk::Command command, int64_t port,
                                         LogWriter& log);
  Task<Status> KeepSnapshot(Scene& scene);
  Task<Status> ForgetSnapshot(const Scene& scene);
  // What the build has done in the sandbox of the version before is undone, and that is restored.
  Task<Result<store::BuildRow>> RestoreInPlace(const Scene& scene, std::string errand);
  Task<Status> CleanUp(const flow::StepContext& context, Scene scene);

  flow::Outcome FailBuild(const Scene& scene, std::string_view stage,
                          const sdk::CommandResult& result) const;
  flow::Outcome FailBuild(const Scene& scene, const Failure& failure,
                          const std::string& message) const;
  flow::Outcome Ready(const Scene& scene, const std::string& url) const;

  sdk::Command CommandOf(const boost::json::object& options, const Place& place, int64_t port,
                         const std::string& line) const;
  // Stored with the window that begins now.
  Task<Result<store::BuildRow>> ShowAgain(std::string build_id, std::string sandbox_id,
                                          std::string url);
  Status Finished(store::Transaction& tx, const store::RunRow& run);
  Status Changed(store::Transaction& tx, const store::RunRow& run, const store::StepRow* step);
  // Moves it and tells it.
  Status Move(store::Transaction& tx, store::BuildRow& build, std::string_view to) const;

  work::Platform platform_;
  Workbench& workbench_;
  BuildLogs& logs_;
  BuildQueue& queue_;
  const Runners& runners_;
  TakePicture picture_;
};

// ---- files of versions, inside transactions -----------------------------------------------

Result<Files> FilesOf(store::Transaction& tx, const std::string& build_id);
Status StoreFiles(store::Transaction& tx, const std::string& build_id, const Files& files);
// Paths of `before` that `after` does not have.
std::vector<std::string> Missing(const Files& before, const Files& after);
// The highest that a version of the project ever had, 0 if there was none.
Result<int64_t> LastNumber(store::Transaction& tx, const store::BuildRow& of);
Place PlaceOf(const store::BuildRow& build);

// Ends a build that is not over, and tells it. For those without a run, and by Finished().
Status EndBuild(store::Transaction& tx, events::Log& log, store::BuildRow& build,
                std::string category, std::string message, std::string summary);

}  // namespace caisson::build
