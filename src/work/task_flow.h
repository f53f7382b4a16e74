// The workflow of a task: provision, clone, branch, agent, commit, push, pull_request, finish.
// docs/tasks.md tells what each step does, and why doing it twice does no harm.
#pragma once

#include "flow/engine.h"
#include "store/work_rows.h"
#include "work/adapter.h"
#include "work/changes.h"
#include "work/platform.h"
#include "work/workshop.h"

namespace caisson::work {

class TaskFlow {
 public:
  static constexpr int64_t kVersion = 1;

  // `model_routes`: the names of those that the broker has. All outlive it.
  TaskFlow(Platform platform, Workshop& workshop, std::vector<std::string> model_routes);

  // For flow::Engine::Define(); refers to this object.
  flow::Definition Define();

 private:
  // What a step knows of its task.
  struct Scene {
    store::TaskRow task;
    store::AgentRow agent;
    store::ExecutionRow execution;
    bool paused = false;   // the task, or its squad
    json::object options;  // of the task
    json::object config;   // of the agent
    Job job;
  };
  using Step = Task<Result<flow::Outcome>> (TaskFlow::*)(flow::StepContext, Scene);

  flow::StepDefinition Make(std::string name, Step step, std::chrono::milliseconds timeout);
  Task<flow::Outcome> Run(Step step, flow::StepContext context);
  Result<Scene> Load(store::Transaction& tx, const flow::StepContext& context) const;
  // Puts the sandbox away and waits until the task goes on.
  Task<flow::Outcome> StandStill(flow::StepContext context, Scene scene);

  Task<Result<flow::Outcome>> Provision(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Clone(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Branch(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Work(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Commit(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Push(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> PullRequest(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Finish(flow::StepContext context, Scene scene);

  // The sandbox with the task's branch checked out. A sandbox that was lost is replaced; with
  // `work` set the agent's work must still be in it.
  Task<Result<std::string>> Return(flow::StepContext context, Scene scene, bool work);
  // To be kept; none if they could not be read.
  Task<TaskChanges> ChangesOf(flow::StepContext context, Scene scene);
  // Nothing if a person has agreed, or nobody is asked.
  Task<Result<std::optional<flow::Outcome>>> AwaitApproval(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> AskFor(flow::StepContext context, Scene scene,
                                     store::ApprovalRow approval);

  // ---- task_agent.cc
  Result<sdk::Command> MakeCommand(const Scene& scene) const;
  // Nothing if the sandbox has to be left before the agent's end.
  Task<Result<std::optional<flow::Outcome>>> WorkHere(flow::StepContext context, Scene scene,
                                                      sdk::Command command);
  // Nothing if the task was paused before the agent's end.
  Task<Result<std::optional<sdk::CommandResult>>> RunUntilPaused(flow::StepContext context,
                                                                 Scene scene, sdk::Command command);
  // True when the task is paused, false if it was stopped.
  Task<bool> AwaitPause(std::string task_id);
  // Until then the agent has nothing to spend: its sandbox is put away, and the step waits.
  Task<Result<flow::Outcome>> Sleep(Scene scene, Time until);
  flow::Outcome AgentEnded(const Scene& scene, const sdk::CommandResult& result,
                           const AgentReport& report);
  // The sandbox to go on in: this one, or a fresh one with the same files if it comes to its end.
  Task<Result<std::string>> LeaveInTime(Scene scene);
  store::CostRow CostOf(const Scene& scene, const Used& used) const;

  // ---- task_pull_request.cc
  // Runs the agent; with pull_request = first_commit a draft is opened at its first commit.
  Task<Result<sdk::CommandResult>> RunAgent(flow::StepContext context, Scene scene,
                                            sdk::Command command);
  Task<void> WatchForCommit(flow::StepContext context, Scene scene);
  Task<Result<int64_t>> OpenDraft(flow::StepContext context, Scene scene);
  forge::NewPullRequest RequestFor(const flow::StepContext& context, const Scene& scene,
                                   std::vector<std::string> commits) const;
  // Remembers it with the task, and tells it the first time.
  Status SetPullRequest(store::Transaction& tx, store::ExecutionRow& execution,
                        const forge::PullRequest& opened);

  Status Finished(store::Transaction& tx, const store::RunRow& run);
  Status Changed(store::Transaction& tx, const store::RunRow& run, const store::StepRow* step);
  Status Revive(store::Transaction& tx, store::ExecutionRow& execution);

  Platform platform_;
  Workshop& workshop_;
  std::vector<std::string> model_routes_;
};

}  // namespace caisson::work
