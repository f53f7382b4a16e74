// The agent's part of a task: its program runs in the sandbox, and in the next one when that has
// lived as long as it may.
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/id.h"
#include "base/log.h"
#include "git/broker.h"
#include "work/agent_output.h"
#include "work/costs.h"
#include "work/event.h"
#include "work/step_tools.h"
#include "work/task_flow.h"

namespace caisson::work {
namespace {

using flow::Outcome;
using flow::StepContext;
using store::ExecutionRow;
using store::Transaction;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxStderr = 2'000;
// A pause is noticed after so long even if its event is not.
constexpr std::chrono::milliseconds kPauseInterval{5'000};
constexpr std::chrono::milliseconds kShortestSleep{1'000};

// Nobody sends it: only time wakes an agent.
std::string SleepKey(const std::string& execution_id) { return "sleep:" + execution_id; }

}  // namespace

Result<sdk::Command> TaskFlow::MakeCommand(const Scene& scene) const {
  const Adapter* adapter = FindAdapter(scene.agent.adapter);
  if (!adapter)
    return Fail(Code::kFailedPrecondition, "the agent {} does not work in sandboxes of this server",
                scene.agent.name);
  int64_t limit = IntOf(scene.config, "timeout_s");
  return adapter->MakeCommand(
      {.config = scene.config,
       .title = scene.task.title,
       .description = scene.task.description,
       .feedback = scene.task.feedback,
       .task_id = scene.task.id,
       .execution_id = scene.execution.id,
       .workdir = workshop_.PathOf(scene.job),
       .timeout = std::chrono::seconds(limit > 0 ? limit : platform_.config.agent_timeout_s),
       .model_routes = model_routes_,
       .model_url = &git::Broker::ModelUrl});
}

Task<Result<Outcome>> TaskFlow::Work(StepContext context, Scene scene) {
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await Return(context, scene, /*work=*/false));
  CO_TRY_ASSIGN(sdk::Command command, MakeCommand(scene));
  auto until = Clock::now() + command.timeout;
  for (;;) {
    CO_TRY_ASSIGN(scene.job.sandbox_id, co_await LeaveInTime(scene));
    scene.execution.sandbox_id = scene.job.sandbox_id;
    // The agent's time is that of all its sandboxes together.
    command.timeout = std::max<std::chrono::milliseconds>(
        std::chrono::ceil<std::chrono::seconds>(until - Clock::now()), std::chrono::seconds(1));
    CO_TRY_ASSIGN(auto outcome, co_await WorkHere(context, scene, command));
    if (outcome) co_return std::move(*outcome);
  }
}

Task<Result<std::optional<Outcome>>> TaskFlow::WorkHere(StepContext context, Scene scene,
                                                        sdk::Command command) {
  CO_TRY_ASSIGN(OutputPosition told,
                co_await platform_.store.Read([row = scene.execution](Transaction& tx) {
                  return ToldOutput(tx, row.id, row.sandbox_id);
                }));
  AgentOutput output(platform_, *FindAdapter(scene.agent.adapter), told,
                     [&scene](std::string type, json::object data) {
                       return About(scene.execution, std::move(type), std::move(data));
                     });
  command.on_output = [&output](sdk::Stream stream, std::string_view piece) {
    output.Take(stream, piece);
  };
  CO_TRY_ASSIGN(std::chrono::milliseconds left, co_await workshop_.TimeLeft(scene.job));
  auto until = Clock::now() + left;
  auto ended = co_await WithDeadline(left, "the agent's work in one sandbox",
                                     RunUntilPaused(context, scene, std::move(command)));
  co_await platform_.log.Flush();
  if (!ended && Clock::now() >= until) co_return std::nullopt;
  if (!ended) co_return tl::unexpected(std::move(ended).error());
  // What it says from here on is read when it goes on.
  if (!*ended) co_return co_await StandStill(std::move(context), std::move(scene));
  AgentReport report = output.Finish();
  if (report.sleeps_until) {
    CO_TRY_ASSIGN(Outcome wait, co_await Sleep(scene, *report.sleeps_until));
    co_return wait;
  }
  Outcome outcome = AgentEnded(scene, **ended, report);
  // One that failed shall start anew when the step is tried again.
  if (outcome.kind == Outcome::Kind::kFail) (void)co_await workshop_.EndAgent(scene.job);
  co_return outcome;
}

Task<Result<std::optional<sdk::CommandResult>>> TaskFlow::RunUntilPaused(StepContext context,
                                                                         Scene scene,
                                                                         sdk::Command command) {
  using namespace asio::experimental::awaitable_operators;
  std::string task_id = scene.task.id;
  auto first = co_await (RunAgent(std::move(context), std::move(scene), std::move(command)) ||
                         AwaitPause(std::move(task_id)));
  if (first.index() == 0) {
    CO_TRY_ASSIGN(auto result, std::get<0>(std::move(first)));
    co_return std::move(result);
  }
  if (std::get<1>(first)) co_return std::nullopt;
  co_return Fail(Code::kCanceled, "the agent's step was stopped");
}

Task<bool> TaskFlow::AwaitPause(std::string task_id) {
  try {
    events::Filter filter{.task_ids = {task_id}, .types = {"task_paused"}};
    auto paused = co_await platform_.log.Follow(std::move(filter), std::nullopt);
    for (;;) {
      auto task = co_await platform_.store.Read(
          [task_id](Transaction& tx) { return tx.Get<store::TaskRow>(task_id); });
      if (task && *task && (*task)->paused_at) co_return true;
      // The event only saves the waiting.
      if (!paused || !co_await (*paused)->Next(kPauseInterval)) co_await SleepFor(kPauseInterval);
    }
  } catch (const boost::system::system_error& e) {
    if (e.code() != asio::error::operation_aborted)
      LogError("watching for a pause failed", {{"error", e.what()}});
    co_return false;
  }
}

Task<Result<Outcome>> TaskFlow::Sleep(Scene scene, Time until) {
  // A sandbox that would not live so long is left before its end.
  CO_TRY_ASSIGN(std::chrono::milliseconds left, co_await workshop_.TimeLeft(scene.job));
  CO_TRY(co_await workshop_.Rest(scene.job));
  auto wait = std::min(std::chrono::ceil<std::chrono::milliseconds>(until - Now()), left);
  co_return Outcome::Wait(SleepKey(scene.execution.id), std::max(wait, kShortestSleep));
}

Task<Result<std::string>> TaskFlow::LeaveInTime(Scene scene) {
  CO_TRY_ASSIGN(std::chrono::milliseconds left, co_await workshop_.TimeLeft(scene.job));
  if (left.count() > 0) co_return scene.job.sandbox_id;
  CO_TRY_ASSIGN(Used used, co_await workshop_.Measure(scene.job));
  store::CostRow cost = CostOf(scene, used);
  Workshop::Renewed also = [this, cost, execution = scene.execution](
                               Transaction& tx, const std::string& sandbox) -> Status {
    TRY(OnExecution(execution.id, [&](Transaction&, ExecutionRow& row) -> Status {
      row.sandbox_id = sandbox;
      return {};
    })(tx));
    TRY_ASSIGN(auto agent, tx.Get<store::AgentRow>(execution.agent_id.value_or("")));
    if (agent && agent->current_task_id == execution.task_id) {
      agent->sandbox_id = sandbox;
      TRY(tx.Update(*agent));
    }
    TRY(platform_.log.Emit(
        tx, About(execution, "log",
                  {{"level", "info"},
                   {"message", fmt::format("sandbox {} has lived as long as it may; the work goes "
                                           "on in {}",
                                           cost.sandbox_id, sandbox)}})));
    return RecordCost(tx, platform_, cost);
  };
  co_return co_await workshop_.Renew(scene.job, std::move(also));
}

store::CostRow TaskFlow::CostOf(const Scene& scene, const Used& used) const {
  return {.id = scene.execution.id + ":" + used.sandbox_id,
          .owner_id = scene.task.owner_id,
          .squad_id = scene.task.squad_id,
          .agent_id = scene.agent.id,
          .task_id = scene.task.id,
          .execution_id = scene.execution.id,
          .sandbox_id = used.sandbox_id,
          .kind = "sandbox",
          .sandbox_ms = used.running_ms,
          .cpu_ms = used.cpu_ms,
          .dollars = SandboxDollars(platform_.config, used.running_ms),
          .at = Now()};
}

Outcome TaskFlow::AgentEnded(const Scene& scene, const sdk::CommandResult& result,
                             const AgentReport& report) {
  Outcome outcome = Outcome::Done({{"exit_code", result.exit_code},
                                   {"summary", report.summary},
                                   {"sandbox_id", scene.job.sandbox_id}});
  std::string error = report.error;
  if (result.timed_out)
    error = "the agent did not come to an end in its time";
  else if (result.exit_code != 0 && error.empty())
    error = fmt::format("the agent ended with status {}: {}", result.exit_code,
                        Shorten(result.stderr_text, kMaxStderr));
  if (!error.empty()) outcome = Outcome::Failed(Error(Code::kUnknown, error));
  store::CostRow cost{.id = RandomUuid(),
                      .owner_id = scene.task.owner_id,
                      .squad_id = scene.task.squad_id,
                      .agent_id = scene.agent.id,
                      .task_id = scene.task.id,
                      .execution_id = scene.execution.id,
                      .sandbox_id = scene.job.sandbox_id,
                      .kind = "model",
                      .model = report.usage.model,
                      .tokens_in = report.usage.tokens_in,
                      .tokens_out = report.usage.tokens_out,
                      .dollars = report.usage.dollars,
                      .at = Now()};
  outcome.also =
      OnExecution(scene.execution.id,
                  [this, cost, recorded = report.usage.recorded, code = result.exit_code,
                   summary = report.summary](Transaction& tx, ExecutionRow& row) -> Status {
                    row.exit_code = code;
                    row.summary = summary;
                    row.sandbox_id = cost.sandbox_id;
                    if (recorded || (cost.tokens_in + cost.tokens_out == 0 && cost.dollars == 0))
                      return {};
                    return RecordCost(tx, platform_, cost);
                  });
  return outcome;
}

}  // namespace caisson::work
