// Taking steps: who may, what they are given, and leases.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/encoding.h"
#include "flow/ledger.h"
#include "flow/owner.h"

namespace caisson::flow {

using std::chrono::milliseconds;
using store::Assign;
using store::NodeRow;
using store::RunRow;
using store::Select;
using store::StepRow;
using store::Transaction;

namespace {

constexpr std::chrono::minutes kPace{1};  // of flow_starts_per_repo

json::object ParseObject(const std::string& text) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  return !ec && value.is_object() ? std::move(value.get_object()) : json::object();
}

}  // namespace

Ledger::Ledger(const Config& config, const std::map<std::string, Definition>& definitions,
               std::string node)
    : config_(config), definitions_(definitions), node_(std::move(node)), owner_(MakeOwner()) {}

const Definition* Ledger::Find(const RunRow& run) const {
  auto found = definitions_.find(run.definition);
  return found == definitions_.end() ? nullptr : &found->second;
}

Result<const Definition*> Ledger::Match(const RunRow& run, const StepRow& step) const {
  const Definition* definition = Find(run);
  if (!definition)
    return Fail(
        Code::kFailedPrecondition,
        "This server has no workflow '{}'. Start a version of the program that has it, then "
        "retry the run.",
        run.definition);
  if (definition->version != run.version)
    return Fail(Code::kFailedPrecondition,
                "The run was started with version {} of the workflow '{}', this server has version "
                "{}. Retry it and name the step to go on at, or start it with the other version.",
                run.version, run.definition, definition->version);
  if (step.seq < 0 || static_cast<size_t>(step.seq) >= definition->steps.size() ||
      definition->steps[static_cast<size_t>(step.seq)].name != step.name)
    return Fail(
        Code::kFailedPrecondition,
        "The workflow '{}' of this server has no step '{}' at place {}, although its version "
        "is the same.",
        run.definition, step.name, step.seq);
  return definition;
}

Result<std::vector<Work>> Ledger::Claim(Transaction& tx, size_t count) {
  std::vector<Work> works;
  // Steps that end without being run do not count, but the transaction must not grow without end.
  for (size_t tries = count + 100; works.size() < count && tries > 0; --tries) {
    Time now = clock_.Now();
    TRY_ASSIGN(auto step,
               store::ClaimStep(tx, {.lease_owner = owner_,
                                     .node = node_,
                                     .lost_before = LostBefore(),
                                     .now = now,
                                     .lease_until = now + milliseconds(config_.flow_lease_ms),
                                     .max_per_repo = config_.flow_max_per_repo,
                                     .max_per_agent = config_.flow_max_per_agent,
                                     .max_per_user = config_.flow_max_per_user,
                                     .max_starts_per_repo = config_.flow_starts_per_repo,
                                     .starts_since = now - kPace}));
    if (!step) break;
    crash_.Reached(step->name, "before_claim");
    TRY_ASSIGN(RunRow run, tx.Need<RunRow>(step->run_id, "run"));
    TRY_ASSIGN(auto work, Prepare(tx, std::move(*step), std::move(run)));
    if (work) works.push_back(std::move(*work));
  }
  return works;
}

Result<size_t> Ledger::GiveUp(Transaction& tx, size_t count) {
  TRY_ASSIGN(auto late, tx.List(Select<RunRow>()
                                    .Less(&RunRow::queue_expires_at, clock_.Now())
                                    .Order(&RunRow::queue_expires_at)
                                    .Limit(static_cast<int64_t>(count))));
  for (RunRow& run : late) {
    std::string why = fmt::format(
        "The run could not be begun until {}, which is as long as it may wait (flow_queue_ttl_s), "
        "and was given up. Retry it when less is to be done.",
        FormatTime(*run.queue_expires_at));
    run.error_class = ErrorClassName(ErrorClass::kTransient);
    run.error = why;
    TRY_ASSIGN(
        auto step,
        tx.First(Select<StepRow>().Eq(&StepRow::run_id, run.id).Eq(&StepRow::state, "ready")));
    if (step) TRY(CloseStep(tx, run, *step, "failed", ErrorClass::kTransient, why));
    TRY(EndRun(tx, run));
  }
  return late.size();
}

Result<std::optional<Work>> Ledger::Prepare(Transaction& tx, StepRow step, RunRow run) {
  auto matched = Match(run, step);
  if (!matched) {
    TRY(EndStep(tx, run, step, "failed", ErrorClass::kPersistent, matched.error().message()));
    return std::optional<Work>();
  }
  const StepDefinition& definition = (*matched)->steps[static_cast<size_t>(step.seq)];
  if (run.cancel_at && !definition.always) {
    TRY(EndStep(tx, run, step, "canceled", ErrorClass::kFatal, run.cancel_reason));
    return std::optional<Work>();
  }
  TRY_ASSIGN(bool elsewhere, IsElsewhere(tx, **matched, run));
  if (elsewhere) {
    TRY(GiveBack(tx, step));
    return std::optional<Work>();
  }
  // Failures are counted where they are written. Beyond that, only servers that died while they ran
  // this step bring it here again: it may be what kills them.
  if (step.attempt > step.max_attempts + config_.flow_attempts) {
    TRY(EndStep(tx, run, step, "failed", ErrorClass::kPersistent,
                fmt::format("The step was begun {} times and never came to an end: its server was "
                            "killed each time.",
                            step.attempt - 1)));
    return std::optional<Work>();
  }
  std::string input_hash;
  TRY_ASSIGN(StepContext context, MakeContext(tx, step, run, input_hash));
  if (!step.input_hash.empty() && step.input_hash != input_hash) {
    TRY(EndStep(tx, run, step, "failed", ErrorClass::kPersistent,
                "What the step is given is not what it was first started with: the run's input or "
                "an earlier result was changed."));
    return std::optional<Work>();
  }
  TRY(Begin(tx, step, run, input_hash));
  return std::optional<Work>(Work{std::move(step), &definition, std::move(context)});
}

// ---- several servers ---------------------------------------------------------------------------

Time Ledger::LostBefore() {
  if (config_.node_lost_s == 0) return Time();
  return clock_.Now() - std::chrono::seconds(config_.node_lost_s);
}

Status Ledger::SayHere(Transaction& tx, Time now) {
  if (node_.empty()) return {};
  TRY_ASSIGN(int64_t known,
             tx.Set(Select<NodeRow>().Eq(&NodeRow::id, node_), {Assign(&NodeRow::seen_at, now)}));
  if (known > 0) return {};
  return tx.Insert(NodeRow{.id = node_, .seen_at = now});
}

Result<bool> Ledger::IsLost(Transaction& tx, const std::string& node) {
  TRY_ASSIGN(auto row, tx.Get<NodeRow>(node));
  if (row) return row->seen_at < LostBefore();
  // It has a sandbox from before servers said that they are there: its time begins now.
  TRY(tx.Insert(NodeRow{.id = node, .seen_at = clock_.Now()}));
  return false;
}

Result<bool> Ledger::IsElsewhere(Transaction& tx, const Definition& definition, RunRow& run) {
  // The only server has every sandbox.
  if (!definition.home || node_.empty()) return false;
  TRY_ASSIGN(std::string home, definition.home(tx, run));
  if (!home.empty() && home != node_) {
    TRY_ASSIGN(bool lost, IsLost(tx, home));
    if (lost) {
      TRY(definition.leave(tx, run, home));
      home.clear();
    }
  }
  if (home != run.node) {
    run.node = home;
    TRY(tx.Set(Select<RunRow>().Eq(&RunRow::id, run.id), {Assign(&RunRow::node, home)}));
  }
  return !home.empty() && home != node_;
}

Status Ledger::GiveBack(Transaction& tx, const StepRow& step) {
  TRY(tx.Set(
      Select<StepRow>().Eq(&StepRow::id, step.id).Eq(&StepRow::fence, step.fence),
      {Assign(&StepRow::state, "ready"), Assign(&StepRow::run_at, clock_.Now()),
       Assign(&StepRow::lease_owner, ""), Assign(&StepRow::lease_until, std::optional<Time>()),
       Assign(&StepRow::attempt, step.attempt - 1)}));
  return {};
}

// ---- beginning ---------------------------------------------------------------------------------

Result<StepContext> Ledger::MakeContext(Transaction& tx, const StepRow& step, const RunRow& run,
                                        std::string& input_hash) {
  StepContext context{.run_id = run.id,
                      .step = step.name,
                      .owner_id = run.owner_id,
                      .task_id = run.task_id.value_or(""),
                      .execution_id = run.execution_id,
                      .attempt = step.attempt,
                      .fence = step.fence,
                      .input = ParseObject(run.input)};
  std::string given = run.input;
  TRY_ASSIGN(auto steps,
             tx.List(Select<StepRow>().Eq(&StepRow::run_id, run.id).Order(&StepRow::seq)));
  for (const StepRow& other : steps) {
    if (other.state != "done" || other.seq >= step.seq) continue;
    given += '\n' + other.name + '\n' + other.result;
    context.results[other.name] = ParseObject(other.result);
  }
  input_hash = HexEncode(Sha256(given));
  if (!step.signal.empty())
    context.signal = ParseObject(step.signal);
  else if (step.wait_until && *step.wait_until <= clock_.Now())
    context.signal = {{"timeout", true}};
  return context;
}

Status Ledger::Begin(Transaction& tx, StepRow& step, RunRow& run, const std::string& input_hash) {
  if (step.input_hash.empty()) {
    step.input_hash = input_hash;
    TRY(tx.Set(Select<StepRow>().Eq(&StepRow::id, step.id),
               {Assign(&StepRow::input_hash, input_hash)}));
  }
  if (run.state != "running") {
    run.state = "running";
    // One that only cleans up never began.
    if (!run.started_at && !run.cancel_at) run.started_at = clock_.Now();
    run.queue_expires_at.reset();
    // It is answered now, what it waited for.
    if (run.error_class == "user_action") run.error_class = run.error = "";
    TRY(SaveRun(tx, run));
  }
  return Changed(tx, run, &step);
}

Result<Pulse> Ledger::Beat(Transaction& tx, Time now, const std::map<std::string, int64_t>& held) {
  Pulse pulse;
  TRY(SayHere(tx, now));
  for (const auto& [id, fence] : held) {
    auto mine = Select<StepRow>()
                    .Eq(&StepRow::id, id)
                    .Eq(&StepRow::fence, fence)
                    .Eq(&StepRow::lease_owner, owner_)
                    .Eq(&StepRow::state, "running");
    TRY(tx.Set(mine, {Assign(&StepRow::lease_until, now + milliseconds(config_.flow_lease_ms))}));
    TRY_ASSIGN(auto step, tx.First(mine));
    if (!step) {
      pulse.lost.insert(id);
      continue;
    }
    TRY_ASSIGN(auto run, tx.Get<RunRow>(step->run_id));
    if (run && run->cancel_at) pulse.canceled.insert(id);
  }
  TRY_ASSIGN(
      auto others,
      tx.List(
          Select<StepRow>().Eq(&StepRow::state, "running").NotEq(&StepRow::lease_owner, owner_)));
  for (const StepRow& step : others) {
    if (!IsKnownDead(step.lease_owner)) continue;
    TRY_ASSIGN(int64_t freed, tx.Set(Select<StepRow>()
                                         .Eq(&StepRow::id, step.id)
                                         .Eq(&StepRow::fence, step.fence)
                                         .Eq(&StepRow::state, "running"),
                                     {Assign(&StepRow::lease_until, clock_.Now())}));
    if (freed > 0) pulse.freed = true;
  }
  if (config_.events_retention_days > 0)
    TRY(tx.Delete(Select<store::SignalRow>().Less(
        &store::SignalRow::at, now - std::chrono::days(config_.events_retention_days))));
  return pulse;
}

Status Ledger::HandBack(Transaction& tx) {
  TRY_ASSIGN(
      auto held,
      tx.List(Select<StepRow>().Eq(&StepRow::state, "running").Eq(&StepRow::lease_owner, owner_)));
  for (const StepRow& step : held) TRY(GiveBack(tx, step));
  return {};
}

Result<Time> Ledger::Newest(Transaction& tx) {
  Time newest{};
  TRY_ASSIGN(auto run, tx.First(Select<RunRow>().Order(&RunRow::created_at, true)));
  if (run) newest = run->created_at;
  TRY_ASSIGN(
      auto started,
      tx.First(Select<StepRow>().NotNull(&StepRow::started_at).Order(&StepRow::started_at, true)));
  if (started) newest = std::max(newest, *started->started_at);
  TRY_ASSIGN(
      auto finished,
      tx.First(
          Select<StepRow>().NotNull(&StepRow::finished_at).Order(&StepRow::finished_at, true)));
  if (finished) newest = std::max(newest, *finished->finished_at);
  return newest;
}

}  // namespace caisson::flow
