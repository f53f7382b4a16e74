#include "work/agent_loop.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "work/costs.h"
#include "work/day_budget.h"
#include "work/json_fields.h"
#include "work/loop_record.h"
#include "work/loop_text.h"
#include "work/loop_tools.h"

namespace caisson::work {
namespace {

using store::Transaction;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMaxHistory = 4 << 20;  // bytes of all messages
constexpr size_t kMaxCalls = 20;         // of one answer
constexpr size_t kMaxShown = 2'000;      // of one text in the output

constexpr std::string_view kInstructions =
    "You are a software engineer at work in a Linux sandbox. You act only by tools: read before "
    "you change, run what you changed, and use narrate to tell what you are about to do. Results "
    "of more than 1000 tokens are cut in the middle. Do not make the same call again when it "
    "failed; try something else. When the work is done, answer with a short summary and no tool "
    "call. Paths are relative to the working directory: ";

constexpr std::string_view kInterrupted =
    "interrupted: the server was restarted while this ran. It may have been done wholly, partly "
    "or not at all; look before you repeat it.";

json::object EventLine(std::string_view type, json::object data) {
  return {{"caisson", "event"}, {"type", type}, {"data", std::move(data)}};
}

json::object PhaseLine(std::string_view change, std::string_view phase) {
  return EventLine("gsd.phase." + std::string(change), {{"phase", phase}});
}

// What the model's answer does to the phases of the work: the first one ends the planning.
std::vector<json::object> PhaseLines(bool first, bool calls) {
  std::vector<json::object> lines;
  if (first) lines.push_back(PhaseLine("completed", "planning"));
  if (first && calls) lines.push_back(PhaseLine("started", "executing"));
  if (!first && !calls) lines.push_back(PhaseLine("completed", "executing"));
  return lines;
}

json::object ResultMessage(const ToolCall& call, std::string_view text) {
  return {{"role", "tool"}, {"tool_call_id", call.id}, {"content", text}};
}

// What a tool is given, with long texts cut: the output is read by people.
json::object ShownInput(const ToolCall& call) {
  json::object input = ParseObject(call.arguments);
  for (auto& [name, value] : input)
    if (value.is_string()) value = Shorten(value.get_string(), kMaxShown);
  return input;
}

// As servers want to see them again.
json::array CleanCalls(const json::array& calls, size_t turn) {
  json::array clean;
  for (const json::value& one : calls) {
    if (clean.size() >= kMaxCalls || !one.is_object()) break;
    const json::object& function = ObjectIn(one.get_object(), "function");
    std::string id = TextOf(one.get_object(), "id");
    if (id.empty()) id = fmt::format("call_{}_{}", turn, clean.size());
    clean.push_back(
        {{"id", id},
         {"type", "function"},
         {"function",
          {{"name", TextOf(function, "name")}, {"arguments", TextOf(function, "arguments")}}}});
  }
  return clean;
}

class LoopRun {
 public:
  LoopRun(Platform platform, ChatModel& model, LoopSubject subject, sdk::EnvdClient& envd,
          sdk::Command command, json::object config, OnText on_text)
      : platform_(platform),
        model_(model),
        subject_(std::move(subject)),
        envd_(envd),
        command_(std::move(command)),
        config_(std::move(config)),
        on_text_(std::move(on_text)),
        limits_(LimitsOf(config_)),
        record_(platform_, command_.on_output),
        guard_(limits_, {}),
        end_(Clock::now() + command_.timeout) {}

  Task<Result<sdk::CommandResult>> Run() {
    CO_TRY(co_await FindWorkdir());
    LoopTools tools(envd_, command_, limits_, "loop-" + subject_.execution_id);
    CO_TRY(co_await Begin(tools));
    while (!Ended() && !Asleep()) {
      CO_TRY(co_await Act(tools));
      if (!Ended()) CO_TRY(co_await Think());
    }
    co_return sdk::CommandResult{.exit_code = record_.phase() == "done" ? 0 : 1};
  }

 private:
  bool Ended() const {
    return record_.phase() == "done" || record_.phase() == "stuck" || record_.phase() == "failed";
  }
  // Until the day's budget is renewed.
  bool Asleep() const {
    auto until = ParseTime(guard_.SleepsUntil());
    return until && Now() < *until;
  }
  milliseconds Left() const { return std::chrono::ceil<milliseconds>(end_ - Clock::now()); }

  Task<Status> FindWorkdir();
  Task<Status> Begin(LoopTools& tools);
  // Makes the calls that the model asked for.
  Task<Status> Act(LoopTools& tools);
  Task<Status> Act(LoopTools& tools, ToolCall call, bool last);
  Task<Status> Think();
  Task<Result<Completion>> Ask();
  Task<Status> Take(Completion completion);
  // Why the model must not be asked any more.
  Task<Result<std::optional<Escalation>>> Check();
  // The day's part of a budget that is shared out, and what this agent took of it.
  struct Today {
    std::optional<DayBudget> budget;
    int64_t own = 0;
  };
  Task<Result<Today>> LookAtToday();
  Task<Status> Sleep(DayBudget budget);
  Escalation Overrun(const DayBudget& budget) const;
  Turn TurnOf(const ToolCall& call, const ToolOutcome& outcome) const;
  Turn TurnOf(const Completion& completion, const json::array& calls) const;
  json::object Thinking() const {
    return EventLine("agent.thinking", {{"turn", IntOf(guard_.state(), "questions") + 1}});
  }
  Task<Status> GiveUp(json::object message, Escalation why);
  Task<Status> EndFailed(std::string error);

  Platform platform_;
  ChatModel& model_;
  LoopSubject subject_;
  sdk::EnvdClient& envd_;
  sdk::Command command_;
  json::object config_;
  OnText on_text_;
  LoopLimits limits_;
  LoopRecord record_;
  LoopGuard guard_;
  Clock::time_point end_;
  std::optional<std::string> squad_id_;
};

Task<Status> LoopRun::FindWorkdir() {
  if (!command_.cwd.empty()) co_return Status();
  sdk::Command ask;
  ask.argv = {"pwd"};
  ask.timeout = limits_.tool_timeout;
  CO_TRY_ASSIGN(auto result, co_await envd_.Run(std::move(ask)));
  command_.cwd = Trim(result.stdout_text);
  if (!command_.cwd.starts_with('/'))
    co_return Fail(Code::kFailedPrecondition, "the sandbox has no working directory");
  co_return Status();
}

Task<Status> LoopRun::Begin(LoopTools& tools) {
  if (subject_.task_id) {
    CO_TRY_ASSIGN(auto task,
                  co_await platform_.store.Read([id = *subject_.task_id](Transaction& tx) {
                    return tx.Get<store::TaskRow>(id);
                  }));
    if (task) squad_id_ = task->squad_id;
  }
  std::vector<Turn> first(2);
  first[0].message = {{"role", "system"}, {"content", std::string(kInstructions) + command_.cwd}};
  first[1].message = {{"role", "user"}, {"content", command_.stdin_text}};
  first[1].output = {EventLine("agent.state", {{"state", "planning"}}),
                     PhaseLine("started", "planning"), Thinking()};
  store::AgentLoopRow row{.execution_id = subject_.execution_id,
                          .sandbox_id = subject_.sandbox_id,
                          .prompt_hash = ShortHash(command_.stdin_text)};
  CO_TRY(co_await record_.Open(std::move(row), std::move(first)));
  guard_ = LoopGuard(limits_, ParseObject(record_.state()));
  if (!record_.found() || Ended()) co_return Status();
  CO_TRY(co_await tools.EndLeftovers());
  std::vector<ToolCall> open = record_.OpenCalls();
  if (open.empty()) co_return Status();
  (void)guard_.Before(open[0]);
  Turn turn = TurnOf(open[0], {.text = std::string(kInterrupted)});
  if (open.size() == 1) turn.output.push_back(Thinking());
  co_return co_await record_.Add({std::move(turn)}, record_.phase(), guard_.state());
}

// ---- acting ------------------------------------------------------------------------------------

Task<Status> LoopRun::Act(LoopTools& tools) {
  std::vector<ToolCall> calls = record_.OpenCalls();
  for (size_t i = 0; i < calls.size() && !Ended(); ++i)
    CO_TRY(co_await Act(tools, calls[i], i + 1 == calls.size()));
  co_return Status();
}

Task<Status> LoopRun::Act(LoopTools& tools, ToolCall call, bool last) {
  if (Left().count() <= 0) co_return co_await EndFailed("the agent did not end in its time");
  if (auto stop = guard_.Before(call))
    co_return co_await GiveUp(ResultMessage(call, "stopped: " + stop->problem), *stop);
  CO_TRY_ASSIGN(ToolOutcome outcome, co_await tools.Run(call, Left()));
  auto stop = guard_.After(call, outcome);
  Turn turn = TurnOf(call, outcome);
  if (last && !stop) turn.output.push_back(Thinking());
  CO_TRY(co_await record_.Add({std::move(turn)}, record_.phase(), guard_.state()));
  if (!stop) co_return Status();
  co_return co_await GiveUp({{"role", "user"}, {"content", "stopped: " + stop->problem}}, *stop);
}

Turn LoopRun::TurnOf(const ToolCall& call, const ToolOutcome& outcome) const {
  Turn turn{.message = ResultMessage(call, outcome.text)};
  turn.output.push_back({{"caisson", "result"},
                         {"tool", call.name},
                         {"ok", outcome.error_type.empty()},
                         {"text", Shorten(outcome.text, kMaxShown)}});
  if (!outcome.said.empty())
    turn.output.push_back({{"caisson", "message"}, {"text", outcome.said}});
  if (!outcome.changed.empty())
    turn.output.push_back({{"caisson", "file"}, {"path", outcome.changed}, {"change", "modified"}});
  if (!outcome.plan.empty())
    turn.output.push_back(EventLine("agent.plan", {{"steps", outcome.plan}}));
  return turn;
}

// ---- thinking ----------------------------------------------------------------------------------

Task<Result<std::optional<Escalation>>> LoopRun::Check() {
  if (auto stop = guard_.CheckMoney()) co_return stop;
  if (record_.bytes() > kMaxHistory)
    co_return Escalation{.problem = "the conversation with the model has become too long",
                         .tried = TextsOf(guard_.state(), "tried"),
                         .recommended_action = "make the task smaller"};
  auto budget = co_await platform_.store.Read(
      [this](Transaction& tx) { return CheckBudget(tx, platform_.config, subject_.owner_id); });
  if (budget) co_return std::nullopt;
  if (budget.error().code() != Code::kResourceExhausted) co_return tl::unexpected(budget.error());
  co_return Escalation{.problem = budget.error().message(),
                       .tried = TextsOf(guard_.state(), "tried"),
                       .recommended_action = "raise the budget, or wait for the next month"};
}

Task<Result<LoopRun::Today>> LoopRun::LookAtToday() {
  co_return co_await platform_.store.Read([this](Transaction& tx) -> Result<Today> {
    Today today;
    TRY_ASSIGN(today.budget, DayBudgetOf(tx, platform_.config, subject_.owner_id, Now()));
    if (!today.budget) return today;
    CostFilter filter{.execution_id = subject_.execution_id, .from = today.budget->begins_at};
    TRY_ASSIGN(today.own, MicrosSpent(tx, subject_.owner_id, filter));
    return today;
  });
}

Escalation LoopRun::Overrun(const DayBudget& budget) const {
  return {.problem = fmt::format("{} of the {} microdollars of this day are spent", budget.spent,
                                 budget.limit),
          .tried = TextsOf(guard_.state(), "tried"),
          .recommended_action = "raise the budget, or start it again on another day",
          .state = "budget_exceeded"};
}

Task<Status> LoopRun::Sleep(DayBudget budget) {
  std::string until = FormatTime(budget.wakes_at());
  Turn turn{.message = {{"role", "user"},
                        {"content", "The work rested until " + until +
                                        ": the day's budget was used up. Programs that ran may "
                                        "have ended; look before you go on."}}};
  turn.output.push_back(EventLine("agent.state", {{"state", "sleeping"}}));
  turn.output.push_back(EventLine("agent.sleeping", {{"until", until},
                                                     {"spent_microdollars", budget.spent},
                                                     {"limit_microdollars", budget.limit}}));
  guard_.Sleep(until);
  co_return co_await record_.Add({std::move(turn)}, record_.phase(), guard_.state());
}

Task<Status> LoopRun::Think() {
  if (Left().count() <= 0) co_return co_await EndFailed("the agent did not end in its time");
  CO_TRY_ASSIGN(Today today, co_await LookAtToday());
  // Whoever went far beyond the day's part is ended; whoever finds it used up waits for the next.
  int64_t most = platform_.config.budget_overrun_pct;
  bool overrun = today.budget && today.own > 0 && today.budget->overrun(most);
  if (today.budget && today.budget->used_up() && !overrun) co_return co_await Sleep(*today.budget);
  CO_TRY_ASSIGN(auto stop, co_await Check());
  if (overrun) stop = Overrun(*today.budget);
  if (stop)
    co_return co_await GiveUp({{"role", "user"}, {"content", "stopped: " + stop->problem}}, *stop);
  auto completion = co_await Ask();
  if (completion) co_return co_await Take(std::move(*completion));
  // What may be over soon is for the next attempt.
  Code code = completion.error().code();
  if (code == Code::kUnavailable || code == Code::kCanceled)
    co_return tl::unexpected(completion.error());
  co_return co_await EndFailed(completion.error().message());
}

Task<Result<Completion>> LoopRun::Ask() {
  for (int64_t attempt = 1;; ++attempt) {
    auto answer = co_await model_.Ask({.model = TextOf(config_, "model"),
                                       .messages = record_.messages(),
                                       .tools = ToolDefinitions(),
                                       .on_text = on_text_});
    // One that cannot be read is asked for again.
    if (answer || answer.error().code() != Code::kDataLoss ||
        attempt >= platform_.config.llm_attempts)
      co_return answer;
  }
}

Task<Status> LoopRun::Take(Completion completion) {
  json::array calls = CleanCalls(completion.tool_calls, record_.messages().size());
  guard_.Count(completion.tokens_in, completion.tokens_out);
  Turn turn = TurnOf(completion, calls);
  guard_.Wake();
  std::string phase = calls.empty() ? "done" : "executing";
  std::string error;
  if (!completion.refusal.empty() || completion.finish_reason == "content_filter")
    error = "the model refuses to do this";
  else if (completion.finish_reason == "length")
    error = fmt::format("the model's answer was cut off after {} tokens (llm_max_tokens)",
                        platform_.config.llm_max_tokens);
  else if (json::serialize(turn.message).size() > kMaxHistory)
    error = "the model's answer is too large";
  if (!error.empty()) {
    phase = "failed";
    turn.message = {{"role", "assistant"}, {"content", "(" + error + ")"}};
    turn.output.push_back({{"caisson", "error"}, {"text", error}});
  } else {
    auto lines = PhaseLines(IntOf(guard_.state(), "questions") == 1, !calls.empty());
    turn.output.insert(turn.output.begin(), lines.begin(), lines.end());
  }
  co_return co_await record_.Add({std::move(turn)}, std::move(phase), guard_.state());
}

Turn LoopRun::TurnOf(const Completion& completion, const json::array& calls) const {
  std::string model = completion.model;
  if (model.empty()) model = TextOf(config_, "model");
  if (model.empty()) model = platform_.config.llm_model;
  double dollars = guard_.DollarsOf(completion.tokens_in, completion.tokens_out);
  Turn turn{.message = {{"role", "assistant"}, {"content", completion.content}}};
  if (!calls.empty()) turn.message["tool_calls"] = calls;
  turn.output.push_back({{"caisson", "usage"},
                         {"model", model},
                         {"tokens_in", completion.tokens_in},
                         {"tokens_out", completion.tokens_out},
                         {"dollars", dollars}});
  turn.cost = store::CostRow{.id = fmt::format("{}:{}", record_.id(), record_.messages().size()),
                             .owner_id = subject_.owner_id,
                             .squad_id = squad_id_,
                             .agent_id = subject_.agent_id,
                             .task_id = subject_.task_id,
                             .execution_id = subject_.execution_id,
                             .sandbox_id = subject_.sandbox_id,
                             .kind = "model",
                             .model = model,
                             .tokens_in = completion.tokens_in,
                             .tokens_out = completion.tokens_out,
                             .dollars = dollars,
                             .at = Now()};
  if (!Trim(completion.content).empty())
    turn.output.push_back({{"caisson", "message"}, {"text", completion.content}});
  if (calls.empty()) turn.output.push_back({{"caisson", "summary"}, {"text", completion.content}});
  if (!calls.empty() && (record_.phase() == "planning" || !guard_.SleepsUntil().empty()))
    turn.output.push_back(EventLine("agent.state", {{"state", "executing"}}));
  int64_t number = guard_.calls();
  for (const json::value& one : calls) {
    ToolCall call{.name = TextOf(ObjectIn(one.as_object(), "function"), "name"),
                  .arguments = TextOf(ObjectIn(one.as_object(), "function"), "arguments")};
    turn.output.push_back({{"caisson", "tool"}, {"name", call.name}, {"input", ShownInput(call)}});
    turn.output.push_back(
        EventLine("agent.tool.called", {{"tool", call.name}, {"call", ++number}}));
  }
  return turn;
}

// ---- ends --------------------------------------------------------------------------------------

Task<Status> LoopRun::GiveUp(json::object message, Escalation why) {
  Turn turn{.message = std::move(message)};
  turn.output.push_back(EventLine("agent.state", {{"state", why.state}}));
  turn.output.push_back(
      EventLine("agent.escalated", {{"problem", why.problem},
                                    {"tried", json::value_from(why.tried)},
                                    {"recommended_action", why.recommended_action}}));
  turn.output.push_back(
      {{"caisson", "error"},
       {"text",
        fmt::format("the agent is {}: {}. Tried: {}. Recommended: {}", why.state, why.problem,
                    why.tried.empty() ? "nothing yet" : fmt::to_string(fmt::join(why.tried, "; ")),
                    why.recommended_action)}});
  co_return co_await record_.Add({std::move(turn)}, "stuck", guard_.state());
}

Task<Status> LoopRun::EndFailed(std::string error) {
  Turn turn{.message = {{"role", "user"}, {"content", "stopped: " + error}}};
  turn.output.push_back({{"caisson", "error"}, {"text", error}});
  co_return co_await record_.Add({std::move(turn)}, "failed", guard_.state());
}

}  // namespace

AgentLoop::AgentLoop(asio::any_io_executor executor, Platform platform)
    : platform_(platform), model_(std::move(executor), platform.config) {}

Task<Result<sdk::CommandResult>> AgentLoop::Run(LoopSubject subject, sdk::EnvdClient& envd,
                                                sdk::Command command, OnText on_text) {
  CO_TRY(model_.CheckSettings());
  json::object config = ParseObject(command.argv.size() > 1 ? command.argv[1] : "");
  LoopRun run(platform_, model_, std::move(subject), envd, std::move(command), std::move(config),
              std::move(on_text));
  co_return co_await run.Run();
}

Task<Status> AgentLoop::Forget(std::string execution_id, std::string sandbox_id) {
  co_return co_await platform_.store.Write(
      [&](Transaction& tx) { return CloseLoops(tx, execution_id, sandbox_id); });
}

}  // namespace caisson::work
