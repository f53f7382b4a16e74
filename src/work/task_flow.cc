#include "work/task_flow.h"

#include <array>
#include <boost/json/serialize.hpp>

#include "base/log.h"
#include "git/broker.h"
#include "work/agents.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/json_fields.h"
#include "work/run_home.h"
#include "work/sandboxes.h"
#include "work/squads.h"
#include "work/start.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::AgentRow;
using store::ExecutionRow;
using store::RunRow;
using store::StepRow;
using store::TaskRow;
using store::Transaction;

// A run that stands still looks again after so long even if nobody wakes it.
constexpr std::chrono::hours kPausePatience{24};
// A sandbox that could not be put away is tried again.
constexpr std::chrono::seconds kRestPatience{10};

// How far the work is when a step begins, and how its agent is called meanwhile.
struct Stage {
  std::string_view step, status, text;
  int percent;
};
constexpr std::array kStages = {
    Stage{"provision", "initializing", "making a sandbox", 5},
    Stage{"clone", "cloning", "cloning the repository", 15},
    Stage{"branch", "cloning", "making the task's branch", 25},
    Stage{"agent", "working", "the agent works", 30},
    Stage{"commit", "committing", "committing the changes", 80},
    Stage{"push", "pushing", "pushing the branch", 88},
    Stage{"pull_request", "pushing", "opening the pull request", 94},
    Stage{"finish", "", "cleaning up", 98},
};

const Stage* FindStage(std::string_view step) {
  const auto* found = std::ranges::find(kStages, step, &Stage::step);
  return found == kStages.end() ? nullptr : found;
}

json::object StepData(const StepRow& step, const Stage& stage) {
  json::object data{{"step", step.name},
                    {"state", step.state},
                    {"attempt", step.attempt},
                    {"percent", stage.percent},
                    {"message", step.error.empty() ? std::string(stage.text) : step.error},
                    {"seq", step.seq},
                    {"steps", kStages.size()}};
  return data;
}

}  // namespace

TaskFlow::TaskFlow(Platform platform, Workshop& workshop, std::vector<std::string> model_routes)
    : platform_(platform), workshop_(workshop), model_routes_(std::move(model_routes)) {}

flow::StepDefinition TaskFlow::Make(std::string name, Step step,
                                    std::chrono::milliseconds timeout) {
  flow::StepDefinition made;
  made.name = std::move(name);
  made.timeout = timeout;
  made.run = [this, step](flow::StepContext context) { return Run(step, std::move(context)); };
  return made;
}

flow::Definition TaskFlow::Define() {
  const Config& config = platform_.config;
  auto create = std::chrono::milliseconds(config.create_timeout_ms * 4);
  // Each git operation is tried several times, with waits in between.
  auto git = std::chrono::milliseconds(config.git_timeout_ms * (config.git_attempts + 1));
  auto clone = std::chrono::milliseconds(config.clone_timeout_ms * (config.git_attempts + 1));
  auto save = std::chrono::milliseconds(config.checkout_cache_max > 0 ? config.save_timeout_ms : 0);
  // An agent's own limit is kept in the sandbox; this one only ends what escaped it.
  auto agent = std::chrono::seconds(std::max<int64_t>(config.agent_timeout_s, 86'400) + 600);
  flow::Definition definition{.name = "task", .version = kVersion};
  definition.steps = {Make("provision", &TaskFlow::Provision, create),
                      Make("clone", &TaskFlow::Clone, create + clone + save),
                      Make("branch", &TaskFlow::Branch, create + clone + git),
                      Make("agent", &TaskFlow::Work, create + clone + agent),
                      Make("commit", &TaskFlow::Commit, create + clone + git),
                      Make("push", &TaskFlow::Push, create + clone + git),
                      Make("pull_request", &TaskFlow::PullRequest,
                           std::chrono::milliseconds(config.github_timeout_ms * 4)),
                      Make("finish", &TaskFlow::Finish, create)};
  definition.steps.back().always = true;
  definition.finished = [this](Transaction& tx, const RunRow& run) { return Finished(tx, run); };
  SetHome(definition, platform_.log, [](Transaction& tx, const RunRow& run) {
    return SandboxesOf(tx, "task", {run.execution_id, Sandboxes::NextHolder(run.execution_id)});
  });
  definition.changed = [this](Transaction& tx, const RunRow& run, const StepRow* step) {
    return Changed(tx, run, step);
  };
  return definition;
}

Result<TaskFlow::Scene> TaskFlow::Load(Transaction& tx, const flow::StepContext& context) const {
  Scene scene;
  TRY_ASSIGN(scene.execution, tx.Need<ExecutionRow>(context.execution_id, "execution"));
  TRY_ASSIGN(scene.task, tx.Need<TaskRow>(context.task_id, "task"));
  TRY_ASSIGN(scene.agent, tx.Need<AgentRow>(TextOf(context.input, "agent_id"), "agent"));
  if (scene.task.squad_id) {
    TRY_ASSIGN(auto squad, tx.Get<store::SquadRow>(*scene.task.squad_id));
    scene.paused = squad && squad->paused_at;
    if (squad && scene.task.repo_url.empty()) scene.task.repo_url = squad->repo_url;
  }
  scene.paused = scene.paused || scene.task.paused_at;
  scene.options = ParseObject(scene.task.options);
  scene.config = ParseObject(scene.agent.config);
  scene.job = {.owner_id = context.owner_id,
               .task_id = context.task_id,
               .agent_id = scene.agent.id,
               .execution_id = context.execution_id,
               .begun = scene.execution.created_at,
               .template_name = TextOf(scene.options, "template"),
               .untouched = scene.execution.base_sha.empty()};
  if (scene.job.template_name.empty()) scene.job.template_name = TextOf(scene.config, "template");
  TRY_ASSIGN(scene.job.repository, RepositoryOf(platform_.config, scene.task));
  // Chosen once: from then on the task knows its branch.
  std::string& branch = scene.job.push_prefix = scene.task.git_branch;
  if (branch.empty()) branch = TextOf(scene.options, "branch_name");
  if (branch.empty())
    branch = git::BranchName(platform_.config.branch_template, scene.task.id, scene.task.number,
                             scene.agent.name, scene.task.title);
  TRY(git::CheckBranchName(branch));
  return scene;
}

Task<flow::Outcome> TaskFlow::Run(Step step, flow::StepContext context) {
  auto scene =
      co_await platform_.store.Read([this, context](Transaction& tx) { return Load(tx, context); });
  if (!scene) co_return flow::Outcome::Failed(scene.error());
  if (scene->paused && context.step != "finish")
    co_return co_await StandStill(std::move(context), std::move(*scene));
  std::string name = context.step;
  auto outcome = co_await (this->*step)(std::move(context), std::move(*scene));
  if (!outcome) {
    LogInfo("a step of a task failed", {{"step", name}, {"error", outcome.error().message()}});
    co_return flow::Outcome::Failed(outcome.error());
  }
  co_return std::move(*outcome);
}

Task<flow::Outcome> TaskFlow::StandStill(flow::StepContext context, Scene scene) {
  Status rests = co_await workshop_.Rest(scene.job);
  if (!rests)
    LogWarn("the sandbox of a paused task could not be put away; it is tried again",
            {{"task", scene.task.id}, {"error", rests.error().message()}});
  std::string key = ResumeKey(context.run_id);
  auto wait =
      rests ? std::chrono::milliseconds(kPausePatience) : std::chrono::milliseconds(kRestPatience);
  flow::Outcome outcome = flow::Outcome::Wait(key, wait);
  // It may have been resumed meanwhile, when nobody waited for that yet.
  outcome.also = [this, key, context](Transaction& tx) -> Status {
    TRY_ASSIGN(Scene now, Load(tx, context));
    if (!now.paused) TRY(platform_.flow.Signal(tx, key, {}));
    return {};
  };
  co_return outcome;
}

Status TaskFlow::Changed(Transaction& tx, const RunRow& run, const StepRow* step) {
  TRY_ASSIGN(auto execution, tx.Get<ExecutionRow>(run.execution_id));
  if (!execution) return {};
  bool over = run.finished_at.has_value();
  if (!IsLive(execution->status) && !over) TRY(Revive(tx, *execution));
  if (!over && execution->status != run.state) {
    execution->status = run.state;
    if (run.state == "running" && !execution->started_at) execution->started_at = Now();
    TRY(tx.Update(*execution));
    TRY(platform_.log.Emit(tx, About(*execution, "status_update", {{"status", run.state}})));
  }
  json::object data{{"state", run.state}, {"step", run.step}};
  if (!run.error.empty()) data["error"] = run.error;
  if (!step) {
    TRY(platform_.log.Emit(tx, About(*execution, "run_updated", std::move(data))));
    return {};
  }
  const Stage* stage = FindStage(step->name);
  if (!stage) return {};
  TRY(platform_.log.Emit(tx, About(*execution, "execution_step", StepData(*step, *stage))));
  if (step->state != "running") return {};
  TRY(platform_.log.Emit(
      tx, About(*execution, "progress", {{"percent", stage->percent}, {"message", stage->text}})));
  TRY_ASSIGN(auto agent, tx.Get<AgentRow>(execution->agent_id.value_or("")));
  if (agent && agent->current_task_id == execution->task_id && !stage->status.empty() &&
      agent->status != stage->status)
    TRY(SetAgentStatus(tx, platform_, *agent, std::string(stage->status)));
  return {};
}

// A run that had ended goes on: so does everything about it, unless its place is taken.
Status TaskFlow::Revive(Transaction& tx, ExecutionRow& execution) {
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, execution.task_id.value_or("")));
  if (!live.empty())
    return Fail(Code::kFailedPrecondition, "another attempt at the task is under way");
  execution.status = "queued";
  execution.error.clear();
  execution.finished_at.reset();
  TRY(tx.Update(execution));
  TRY_ASSIGN(auto task, tx.Get<TaskRow>(execution.task_id.value_or("")));
  if (task && task->status == "done")
    return Fail(Code::kFailedPrecondition, "the task is done; open it again first");
  if (task && task->status != "in_progress")
    TRY(SetTaskStatus(tx, platform_, *task, "in_progress"));
  TRY_ASSIGN(auto agent, tx.Get<AgentRow>(execution.agent_id.value_or("")));
  if (agent && agent->current_task_id && agent->current_task_id != execution.task_id)
    return Fail(Code::kFailedPrecondition, "the agent {} works on another task", agent->name);
  if (agent && !agent->current_task_id) {
    agent->current_task_id = execution.task_id;
    TRY(SetAgentStatus(tx, platform_, *agent, "initializing"));
  }
  return {};
}

Status TaskFlow::Finished(Transaction& tx, const RunRow& run) {
  TRY_ASSIGN(auto execution, tx.Get<ExecutionRow>(run.execution_id));
  if (!execution) return {};
  Ending ending{.status = run.state, .error = run.error};
  if (run.state == "canceled") ending.error = run.cancel_reason;
  if (run.state == "dead") ending.status = "failed";
  return EndExecution(tx, platform_, *execution, ending);
}

}  // namespace caisson::work
