#include "work/outside_agents.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "work/agent_config.h"
#include "work/agents.h"
#include "work/costs.h"
#include "work/dependencies.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/json_fields.h"
#include "work/squads.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::AgentRow;
using store::ExecutionRow;
using store::Select;
using store::TaskRow;
using store::Transaction;

constexpr std::chrono::milliseconds kPoll{500};

Result<AgentRow> NeedOutside(Transaction& tx, const std::string& owner_id, const std::string& id) {
  TRY_ASSIGN(AgentRow agent, NeedAgent(tx, owner_id, id));
  if (agent.adapter != kExternal)
    return Fail(Code::kFailedPrecondition,
                "the agent {} works in sandboxes of this server; only external agents ask for work",
                agent.name);
  return agent;
}

// The urgent ones first, then those that stand higher on the board; none that may not start now.
Result<std::optional<TaskRow>> NextTask(Transaction& tx, const AgentRow& agent) {
  TRY_ASSIGN(
      auto tasks,
      tx.List(Select<TaskRow>().Eq(&TaskRow::agent_id, agent.id).Eq(&TaskRow::status, "pending")));
  auto urgency = [](const TaskRow& task) {
    return std::ranges::find(kPriorities, task.priority) - kPriorities.begin();
  };
  std::ranges::sort(tasks, [&](const TaskRow& a, const TaskRow& b) {
    return std::pair(-urgency(a), a.position) < std::pair(-urgency(b), b.position);
  });
  for (TaskRow& task : tasks)
    if (TakeFromSquad(tx, task) && CheckNotBlocked(tx, task)) return std::optional(std::move(task));
  return std::optional<TaskRow>();
}

// The execution that was made when the task was started, or a new one.
Result<ExecutionRow> Begin(Transaction& tx, const TaskRow& task, const AgentRow& agent) {
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, task.id));
  if (!live.empty()) {
    live.front().status = "running";
    live.front().started_at = Now();
    TRY(tx.Update(live.front()));
    return std::move(live.front());
  }
  ExecutionRow execution{.id = RandomUuid(),
                         .owner_id = task.owner_id,
                         .task_id = task.id,
                         .agent_id = agent.id,
                         .squad_id = task.squad_id,
                         .status = "running",
                         .created_at = Now(),
                         .started_at = Now()};
  TRY(tx.Insert(execution));
  return execution;
}

Result<std::optional<Claimed>> TryClaim(Transaction& tx, Platform& platform,
                                        const std::string& owner_id, const std::string& agent_id) {
  TRY_ASSIGN(AgentRow agent, NeedOutside(tx, owner_id, agent_id));
  agent.heartbeat_at = Now();
  TRY(tx.Update(agent));
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::agent_id, agent.id));
  for (ExecutionRow& execution : live) {
    if (execution.status != "running" || !execution.task_id) continue;
    TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, *execution.task_id));
    return std::optional(Claimed{std::move(task), std::move(execution)});
  }
  if (agent.status == "paused") return std::optional<Claimed>();
  TRY(CheckBudget(tx, platform.config, owner_id));
  TRY_ASSIGN(auto task, NextTask(tx, agent));
  if (!task) return std::optional<Claimed>();
  TRY_ASSIGN(ExecutionRow execution, Begin(tx, *task, agent));
  TRY(SetTaskStatus(tx, platform, *task, "in_progress"));
  agent.current_task_id = task->id;
  TRY(SetAgentStatus(tx, platform, agent, "working"));
  TRY(platform.log.Emit(
      tx, About(execution, "execution_started",
                {{"status", "running"}, {"title", task->title}, {"agent", agent.name}})));
  return std::optional(Claimed{std::move(*task), std::move(execution)});
}

Status CheckReport(const Report& report, const Config& config) {
  auto max_text = static_cast<size_t>(config.api_max_string);
  if (report.status != "succeeded" && report.status != "failed")
    return Fail(Code::kInvalidArgument, "status must be succeeded or failed, not '{}'",
                report.status);
  TRY(CheckText(report.summary, "summary", 0, max_text));
  TRY(CheckText(report.branch, "branch", 0, 200));
  TRY(CheckText(report.pull_request_url, "pull_request_url", 0, 2'000));
  if (report.tokens_in < 0 || report.tokens_out < 0 || report.dollars < 0)
    return Fail(Code::kInvalidArgument, "usage must not be negative");
  return {};
}

Status RecordUsage(Transaction& tx, Platform& platform, const ExecutionRow& execution,
                   const Report& report) {
  if (report.tokens_in + report.tokens_out == 0 && report.dollars == 0) return {};
  return RecordCost(tx, platform,
                    {.id = execution.id + ":report",
                     .owner_id = execution.owner_id,
                     .squad_id = execution.squad_id,
                     .agent_id = execution.agent_id,
                     .task_id = execution.task_id,
                     .execution_id = execution.id,
                     .kind = "model",
                     .model = report.model,
                     .tokens_in = report.tokens_in,
                     .tokens_out = report.tokens_out,
                     .dollars = report.dollars,
                     .at = Now()});
}

Status GiveBack(Transaction& tx, Platform& platform, AgentRow agent, ExecutionRow execution) {
  TRY_ASSIGN(auto task, tx.Get<TaskRow>(execution.task_id.value_or("")));
  if (task && task->status == "in_progress") TRY(SetTaskStatus(tx, platform, *task, "pending"));
  execution.status = "failed";
  execution.error = fmt::format("the agent {} was silent for more than {} seconds", agent.name,
                                platform.config.agent_heartbeat_s);
  execution.finished_at = Now();
  TRY(tx.Update(execution));
  agent.current_task_id.reset();
  TRY(SetAgentStatus(tx, platform, agent, "error"));
  TRY(platform.log.Emit(tx, About(execution, "execution_completed",
                                  {{"status", "failed"}, {"error", execution.error}})));
  return {};
}

}  // namespace

OutsideAgents::OutsideAgents(asio::any_io_executor executor, Platform platform)
    : platform_(platform), tasks_(std::move(executor)) {}

void OutsideAgents::Start() { tasks_.Spawn("outside agents", Watch()); }

Task<void> OutsideAgents::Stop() { co_await tasks_.Stop(); }

Task<void> OutsideAgents::Watch() {
  // Often enough that a task comes back soon after its agent's time is over.
  auto pause = std::chrono::milliseconds(
      std::clamp<int64_t>(platform_.config.agent_heartbeat_s * 1000 / 4, 100, 15'000));
  for (;;) {
    co_await SleepFor(pause);
    auto done = co_await GiveBackSilent(Now());
    if (!done)
      LogWarn("outside agents could not be looked after", {{"error", done.error().message()}});
  }
}

Task<Result<std::optional<Claimed>>> OutsideAgents::Claim(std::string owner_id,
                                                          std::string agent_id,
                                                          std::chrono::milliseconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    CO_TRY_ASSIGN(auto claimed,
                  co_await platform_.store.Write([this, owner_id, agent_id](Transaction& tx) {
                    return TryClaim(tx, platform_, owner_id, agent_id);
                  }));
    auto left = deadline - std::chrono::steady_clock::now();
    if (claimed || left <= std::chrono::milliseconds(0)) co_return claimed;
    co_await SleepFor(std::min(kPoll, std::chrono::ceil<std::chrono::milliseconds>(left)));
  }
}

Task<Status> OutsideAgents::Heartbeat(std::string owner_id, std::string agent_id) {
  co_return co_await platform_.store.Write([owner_id, agent_id](Transaction& tx) -> Status {
    TRY_ASSIGN(AgentRow agent, NeedOutside(tx, owner_id, agent_id));
    agent.heartbeat_at = Now();
    return tx.Update(agent);
  });
}

Task<Result<ExecutionRow>> OutsideAgents::Finish(std::string owner_id, std::string agent_id,
                                                 Report report) {
  CO_TRY(CheckReport(report, platform_.config));
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Result<ExecutionRow> {
    TRY_ASSIGN(AgentRow agent, NeedOutside(tx, owner_id, agent_id));
    TRY_ASSIGN(auto execution, tx.Get<ExecutionRow>(report.execution_id));
    if (!execution || execution->agent_id != agent.id)
      return Fail(Code::kNotFound, "there is no execution {} of this agent", report.execution_id);
    if (!IsLive(execution->status)) {
      // Told twice, the second time because the first answer was lost.
      if (execution->status == report.status) return std::move(*execution);
      return Fail(Code::kFailedPrecondition, "this execution is over: {}",
                  execution->error.empty() ? execution->status : execution->error);
    }
    execution->summary = report.summary;
    execution->git_branch = report.branch;
    execution->pull_request_url = report.pull_request_url;
    if (auto task = tx.Get<TaskRow>(execution->task_id.value_or("")); task && *task) {
      (*task)->git_branch = report.branch;
      (*task)->pull_request_url = report.pull_request_url;
      TRY(tx.Update(**task));
    }
    TRY(RecordUsage(tx, platform_, *execution, report));
    TRY(EndExecution(tx, platform_, *execution,
                     {report.status, report.status == "failed" ? report.summary : ""}));
    return std::move(*execution);
  });
}

Task<Result<int64_t>> OutsideAgents::GiveBackSilent(Time now) {
  Time limit = now - std::chrono::seconds(platform_.config.agent_heartbeat_s);
  co_return co_await platform_.store.Write([this, limit](Transaction& tx) -> Result<int64_t> {
    TRY_ASSIGN(auto agents, tx.List(Select<AgentRow>()
                                        .Eq(&AgentRow::adapter, kExternal)
                                        .NotNull(&AgentRow::current_task_id)
                                        .Less(&AgentRow::heartbeat_at, limit)));
    int64_t count = 0;
    for (AgentRow& agent : agents) {
      TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::agent_id, agent.id));
      for (ExecutionRow& execution : live) {
        if (execution.status != "running") continue;
        TRY(GiveBack(tx, platform_, agent, std::move(execution)));
        ++count;
      }
    }
    return count;
  });
}

}  // namespace caisson::work
