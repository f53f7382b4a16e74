// What others ask of runs: start, signal, cancel, redrive.
#include <boost/json/serialize.hpp>

#include "flow/ledger.h"

namespace caisson::flow {

using store::Assign;
using store::RunRow;
using store::Select;
using store::SignalRow;
using store::StepRow;
using store::Transaction;

namespace {

bool HasEnded(const RunRow& run) {
  return run.state == "succeeded" || run.state == "failed" || run.state == "canceled" ||
         run.state == "dead";
}

// The place in `definition` where a run with these steps goes on.
Result<size_t> FindPlace(const Definition& definition, const std::vector<StepRow>& rows,
                         const std::string& name) {
  std::set<std::string> done;
  std::string stopped;
  for (const StepRow& row : rows) {
    if (row.state == "done")
      done.insert(row.name);
    else if (stopped.empty())
      stopped = row.name;
  }
  const std::string& wanted = name.empty() ? stopped : name;
  for (size_t i = 0; i < definition.steps.size(); ++i) {
    const std::string& step = definition.steps[i].name;
    if (step == wanted) return i;
    if (!done.contains(step))
      return Fail(Code::kFailedPrecondition,
                  "The run cannot go on at the step '{}': '{}' comes before it and is not done.",
                  wanted, step);
  }
  return Fail(Code::kInvalidArgument, "The workflow '{}' has no step '{}'.", definition.name,
              wanted);
}

}  // namespace

Status Ledger::StartRun(Transaction& tx, const StartOptions& options) {
  auto found = definitions_.find(options.definition);
  if (found == definitions_.end() || found->second.steps.empty())
    return Fail(Code::kInvalidArgument, "There is no workflow '{}'.", options.definition);
  const Definition& definition = found->second;
  RunRow run{.id = options.id,
             .definition = definition.name,
             .version = definition.version,
             .owner_id = options.owner_id,
             .task_id = options.task_id,
             .execution_id = options.execution_id,
             .step = definition.steps.front().name,
             .input = json::serialize(options.input),
             .priority = options.priority,
             .repo_key = options.repo_key,
             .agent_key = options.agent_key,
             .user_key = options.user_key,
             .created_at = clock_.Now(),
             .queue_expires_at = QueueExpiry()};
  TRY(tx.Insert(run));
  TRY(AddStep(tx, run, definition, 0));
  return Changed(tx, run, nullptr);
}

Result<bool> Ledger::Signal(Transaction& tx, const std::string& key, const json::object& data) {
  TRY_ASSIGN(auto step, tx.First(Select<StepRow>()
                                     .Eq(&StepRow::wait_key, key)
                                     .Eq(&StepRow::state, "waiting")
                                     .Order(&StepRow::run_at)));
  if (!step) {
    TRY_ASSIGN(auto kept, tx.Get<SignalRow>(key));
    if (!kept) TRY(tx.Insert(SignalRow{key, json::serialize(data), clock_.Now()}));
    return false;
  }
  step->state = "ready";
  step->signal = json::serialize(data);
  step->run_at = clock_.Now();
  TRY(tx.Update(*step));
  TRY_ASSIGN(RunRow run, tx.Need<RunRow>(step->run_id, "run"));
  run.state = "queued";
  TRY(SaveRun(tx, run));
  TRY(Changed(tx, run, &*step));
  return true;
}

Result<bool> Ledger::Cancel(Transaction& tx, const std::string& run_id, const std::string& reason) {
  TRY_ASSIGN(RunRow run, tx.Need<RunRow>(run_id, "run"));
  if (HasEnded(run) || run.cancel_at) return false;
  run.cancel_at = clock_.Now();
  run.cancel_reason = reason.empty() ? "The run was canceled." : reason;
  run.queue_expires_at.reset();
  TRY(tx.Set(
      Select<RunRow>().Eq(&RunRow::id, run.id),
      {Assign(&RunRow::cancel_at, run.cancel_at), Assign(&RunRow::cancel_reason, run.cancel_reason),
       Assign(&RunRow::queue_expires_at, run.queue_expires_at)}));
  TRY(Changed(tx, run, nullptr));
  TRY_ASSIGN(auto step, tx.First(Select<StepRow>()
                                     .Eq(&StepRow::run_id, run.id)
                                     .In(&StepRow::state,
                                         std::vector<std::string>{"ready", "running", "waiting"})));
  // One that runs is told by who runs it; its outcome ends the run. A dead server's is claimed
  // again and ends then.
  if (!step || step->state == "running") return true;
  auto matched = Match(run, *step);
  if (matched && (*matched)->steps[static_cast<size_t>(step->seq)].always) return true;
  TRY(EndStep(tx, run, *step, "canceled", ErrorClass::kFatal, run.cancel_reason));
  return true;
}

Status Ledger::Redrive(Transaction& tx, const std::string& run_id, const std::string& name) {
  TRY_ASSIGN(RunRow run, tx.Need<RunRow>(run_id, "run"));
  bool asks = run.state == "waiting" && run.error_class == "user_action";
  if (run.state != "dead" && run.state != "failed" && !asks)
    return Fail(
        Code::kFailedPrecondition,
        "The run is {}; only one that is dead, failed or waits for its user can be retried.",
        run.state);
  const Definition* definition = Find(run);
  if (!definition)
    return Fail(Code::kFailedPrecondition, "This server has no workflow '{}'.", run.definition);
  if (definition->version != run.version && name.empty())
    return Fail(Code::kFailedPrecondition,
                "The run was started with version {} of the workflow '{}', this server has version "
                "{}: name the step to go on at.",
                run.version, run.definition, definition->version);
  TRY_ASSIGN(auto rows,
             tx.List(Select<StepRow>().Eq(&StepRow::run_id, run.id).Order(&StepRow::seq)));
  TRY_ASSIGN(size_t place, FindPlace(*definition, rows, name));
  // A new row has a new id, so that nobody who still holds the old one can write to it.
  std::map<std::string, int64_t> kept;
  for (size_t i = 0; i < place; ++i) kept[definition->steps[i].name] = static_cast<int64_t>(i);
  for (const StepRow& row : rows) {
    auto select = Select<StepRow>().Eq(&StepRow::id, row.id);
    if (auto at = kept.find(row.name); at == kept.end())
      TRY(tx.Delete(select));
    else if (at->second != row.seq)
      TRY(tx.Set(select, {Assign(&StepRow::seq, at->second)}));
  }
  run.version = definition->version;
  TRY(tx.Set(Select<RunRow>().Eq(&RunRow::id, run.id), {Assign(&RunRow::version, run.version)}));
  run.state = "queued";
  run.error_class = run.error = "";
  run.finished_at.reset();
  if (!run.started_at) run.queue_expires_at = QueueExpiry();
  TRY(AddStep(tx, run, *definition, place));
  TRY(SaveRun(tx, run));
  return Changed(tx, run, nullptr);
}

}  // namespace caisson::flow
