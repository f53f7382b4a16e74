#include "work/start.h"

#include "base/id.h"
#include "git/commit_message.h"
#include "work/agent_config.h"
#include "work/agents.h"
#include "work/authors.h"
#include "work/costs.h"
#include "work/dependencies.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/squads.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::AgentRow;
using store::ExecutionRow;
using store::Select;
using store::TaskRow;
using store::Transaction;

constexpr int64_t kMaxQueued = 1'000;  // of one owner

int64_t Urgency(const std::string& priority) {
  int64_t level = std::ranges::find(kPriorities, priority) - kPriorities.begin();
  return level * 10;
}

// Who does it, or why nobody can now: waiting helps against that.
struct Choice {
  std::optional<AgentRow> agent;
  std::string why;
};

// A member of the squad that has nothing to do.
Result<Choice> FreeMember(Transaction& tx, const TaskRow& task) {
  TRY_ASSIGN(auto members, tx.List(Select<store::SquadMemberRow>()
                                       .Eq(&store::SquadMemberRow::squad_id, *task.squad_id)
                                       .Order(&store::SquadMemberRow::created_at)
                                       .Order(&store::SquadMemberRow::id)));
  if (members.empty())
    return Fail(Code::kFailedPrecondition,
                "the task's squad has no agents; add some, or assign "
                "the task to an agent");
  for (const store::SquadMemberRow& member : members) {
    TRY_ASSIGN(AgentRow agent, NeedAgent(tx, task.owner_id, member.agent_id));
    if (IsFree(agent)) return Choice{std::move(agent), ""};
  }
  return Choice{{},
                fmt::format("all {} agents of the task's squad are busy; the task can start when "
                            "one is free",
                            members.size())};
}

// Of a task that waits for whoever comes: one that works in a sandbox, which begins at once.
Result<Choice> FreeAgent(Transaction& tx, const TaskRow& task) {
  TRY_ASSIGN(auto agents, tx.List(Select<AgentRow>()
                                      .Eq(&AgentRow::owner_id, task.owner_id)
                                      .Order(&AgentRow::created_at)
                                      .Order(&AgentRow::id)));
  for (AgentRow& agent : agents)
    if (IsFree(agent) && agent.adapter != kExternal) return Choice{std::move(agent), ""};
  return Choice{{}, "all agents are busy"};
}

Result<Choice> ChooseAgent(Transaction& tx, const TaskRow& task, const StartRequest& request) {
  std::string id = request.agent_id.empty() ? task.agent_id.value_or("") : request.agent_id;
  if (id.empty() && task.squad_id) return FreeMember(tx, task);
  if (id.empty() && request.when_free) return FreeAgent(tx, task);
  if (id.empty()) return Fail(Code::kFailedPrecondition, "the task has no agent; assign it to one");
  TRY_ASSIGN(AgentRow agent, NeedAgent(tx, task.owner_id, id));
  if (agent.status == "paused")
    return Choice{{}, fmt::format("the agent {} is paused", agent.name)};
  if (agent.current_task_id && *agent.current_task_id != task.id) {
    TRY_ASSIGN(auto other, tx.Get<TaskRow>(*agent.current_task_id));
    return Choice{
        {},
        fmt::format("the agent {} works on #{} {}; an agent does one task at a time", agent.name,
                    other ? other->number : 0, other ? other->title : *agent.current_task_id)};
  }
  return Choice{std::move(agent), ""};
}

Status CheckStart(Transaction& tx, Platform& platform, TaskRow& task) {
  TRY(TakeFromSquad(tx, task));
  TRY(CheckNotBlocked(tx, task));
  return CheckBudget(tx, platform.config, task.owner_id);
}

// Whether it can end in a pull request. An agent elsewhere opens its own.
Status CheckEnd(Transaction& tx, const Platform& platform, const TaskRow& task,
                const Choice& choice) {
  bool outside = choice.agent && choice.agent->adapter == kExternal;
  if (outside || platform.config.pull_request == "never" || task.repo_url.empty()) return {};
  return CheckAuthor(tx, platform, task.owner_id);
}

Status StartFlow(Transaction& tx, Platform& platform, const TaskRow& task, const AgentRow& agent,
                 const ExecutionRow& execution) {
  TRY_ASSIGN(git::Repository repo, RepositoryOf(platform.config, task));
  // Told now, not after the agent has worked for an hour.
  TRY(CommitMessageOf(platform.config, task, agent));
  return platform.flow.StartRun(tx, {.id = execution.run_id,
                                     .definition = "task",
                                     .owner_id = task.owner_id,
                                     .task_id = task.id,
                                     .execution_id = execution.id,
                                     .input = {{"agent_id", agent.id}},
                                     .priority = Urgency(task.priority),
                                     .repo_key = repo.is_scratch() ? "" : repo.clone_url(),
                                     .agent_key = agent.id,
                                     .user_key = task.owner_id});
}

// It keeps its place if it has one.
Result<Started> Enqueue(Transaction& tx, Platform& platform, TaskRow task,
                        const StartRequest& request) {
  Time since = task.queued_at.value_or(Now());
  bool known = task.queued_at.has_value();
  if (!known) {
    TRY_ASSIGN(
        int64_t waiting,
        tx.Count(
            Select<TaskRow>().Eq(&TaskRow::owner_id, task.owner_id).NotNull(&TaskRow::queued_at)));
    if (waiting >= kMaxQueued)
      return Fail(Code::kResourceExhausted, "{} tasks wait for an agent already", waiting);
  }
  if (!request.agent_id.empty()) task.agent_id = request.agent_id;
  if (!request.feedback.empty()) task.feedback = request.feedback;
  std::string column =
      task.status == "backlog" || task.status == "canceled" ? "pending" : task.status;
  task.queued_at = since;
  if (!known || column != task.status) TRY(SetTaskStatus(tx, platform, task, column));
  return Started{.task_id = task.id, .already = known, .queued = true};
}

}  // namespace

Result<git::Repository> RepositoryOf(const Config& config, const TaskRow& task) {
  if (task.repo_url.empty()) return git::ScratchRepository(config.github_url);
  return git::ParseRepository(task.repo_url, config.github_url);
}

Result<std::string> CommitMessageOf(const Config& config, const TaskRow& task,
                                    const AgentRow& agent) {
  return git::RenderCommitMessage(
      config.commit_template,
      {.title = task.title, .number = task.number, .agent = agent.name, .id = task.id});
}

Result<Started> StartTask(Transaction& tx, Platform& platform, const StartRequest& request) {
  TRY_ASSIGN(TaskRow task, NeedTask(tx, request.owner_id, request.task_id));
  if (!request.execution_id.empty()) {
    TRY_ASSIGN(auto made, tx.Get<ExecutionRow>(request.execution_id));
    if (made && made->task_id == task.id)
      return Started{task.id, made->id, made->run_id, /*already=*/true};
  }
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, task.id));
  if (!live.empty()) {
    const ExecutionRow& under_way = live.front();
    if (!request.agent_id.empty() && under_way.agent_id != request.agent_id)
      return Fail(Code::kFailedPrecondition,
                  "another agent works on this task already; cancel that first");
    TRY_ASSIGN(auto run, tx.Get<store::RunRow>(under_way.run_id));
    if (run && run->cancel_at)
      return Fail(Code::kFailedPrecondition,
                  "the last attempt is still being called off; try again in a moment");
    return Started{task.id, under_way.id, under_way.run_id, /*already=*/true};
  }
  TRY(request.allowed);
  TRY(CheckStart(tx, platform, task));
  TRY_ASSIGN(Choice choice, ChooseAgent(tx, task, request));
  TRY(CheckEnd(tx, platform, task, choice));
  if (!choice.agent && request.when_free) return Enqueue(tx, platform, std::move(task), request);
  if (!choice.agent) return Fail(Code::kFailedPrecondition, "{}", choice.why);
  AgentRow agent = std::move(*choice.agent);
  bool outside = agent.adapter == kExternal;
  ExecutionRow execution{.id = request.execution_id.empty() ? RandomUuid() : request.execution_id,
                         .owner_id = task.owner_id,
                         .task_id = task.id,
                         .agent_id = agent.id,
                         .squad_id = task.squad_id,
                         .run_id = outside ? "" : RandomUuid(),
                         .git_branch = task.git_branch,
                         .created_at = Now()};
  TRY(tx.Insert(execution));
  task.agent_id = agent.id;
  task.queued_at.reset();
  if (!request.feedback.empty()) task.feedback = request.feedback;
  // An outside agent takes it when it asks for work.
  TRY(SetTaskStatus(tx, platform, task, outside ? "pending" : "in_progress"));
  if (outside) return Started{task.id, execution.id, "", false};
  TRY(StartFlow(tx, platform, task, agent, execution));
  agent.current_task_id = task.id;
  TRY(SetAgentStatus(tx, platform, agent, "initializing"));
  TRY(platform.log.Emit(
      tx, About(execution, "execution_started",
                {{"status", "queued"}, {"title", task.title}, {"agent", agent.name}})));
  return Started{task.id, execution.id, execution.run_id, false};
}

Result<bool> CancelWork(Transaction& tx, Platform& platform, const TaskRow& task,
                        const std::string& reason) {
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, task.id));
  for (ExecutionRow& execution : live) {
    if (execution.run_id.empty()) {
      TRY(EndExecution(tx, platform, execution, {"canceled", reason}));
    } else {
      TRY(platform.flow.Cancel(tx, execution.run_id, reason));
    }
  }
  return !live.empty();
}

Status EndExecution(Transaction& tx, Platform& platform, ExecutionRow& execution,
                    const Ending& ending) {
  if (!IsLive(execution.status)) return {};
  execution.status = ending.status;
  execution.error = ending.error;
  execution.finished_at = Now();
  TRY(tx.Update(execution));
  bool well = ending.status == "succeeded", canceled = ending.status == "canceled";
  if (execution.agent_id) {
    TRY_ASSIGN(auto agent, tx.Get<AgentRow>(*execution.agent_id));
    if (agent && agent->current_task_id == execution.task_id) {
      agent->current_task_id.reset();
      agent->sandbox_id.clear();
      TRY(SetAgentStatus(tx, platform, *agent, well ? "completed" : canceled ? "idle" : "error"));
    }
  }
  if (execution.task_id) {
    TRY_ASSIGN(auto task, tx.Get<TaskRow>(*execution.task_id));
    // Somebody may have moved it by hand meanwhile: that is what they want.
    bool waited = execution.run_id.empty() && task && task->status == "pending";
    bool paused = task && task->paused_at;
    if (paused) {
      task->paused_at.reset();
      task->pause_reason.clear();
    }
    if (task && (task->status == "in_progress" || waited)) {
      if (well) task->feedback.clear();
      TRY(SetTaskStatus(tx, platform, *task,
                        well       ? "in_review"
                        : canceled ? "canceled"
                                   : "failed"));
    } else if (paused) {
      TRY(SetTaskStatus(tx, platform, *task, task->status));
    }
  }
  json::object data{{"status", execution.status}, {"summary", execution.summary}};
  if (!execution.pull_request_url.empty()) data["pull_request_url"] = execution.pull_request_url;
  if (!execution.error.empty()) data["error"] = execution.error;
  TRY(platform.log.Emit(tx, About(execution, "execution_completed", data)));
  TRY(platform.log.Emit(tx, About(execution, well ? "completed" : "error",
                                  {{"message", well ? execution.summary : execution.error}})));
  return {};
}

}  // namespace caisson::work
