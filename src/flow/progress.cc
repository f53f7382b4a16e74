// How a run goes from one step to the next, and how it ends.
#include "base/id.h"
#include "flow/ledger.h"

namespace caisson::flow {

using store::Assign;
using store::RunRow;
using store::Select;
using store::StepRow;
using store::Transaction;

namespace {

// Nothing but `always` steps is left to do.
bool IsEnding(const RunRow& run) {
  return run.cancel_at || (!run.error_class.empty() && run.error_class != "user_action");
}

std::string_view FinalState(const RunRow& run) {
  if (run.cancel_at) return "canceled";
  if (run.error_class.empty()) return "succeeded";
  return run.error_class == ErrorClassName(ErrorClass::kFatal) ? "failed" : "dead";
}

}  // namespace

Status Ledger::Changed(Transaction& tx, const RunRow& run, const StepRow* step) {
  const Definition* definition = Find(run);
  if (!definition || !definition->changed) return {};
  return definition->changed(tx, run, step);
}

Status Ledger::SaveRun(Transaction& tx, const RunRow& run) {
  TRY(tx.Set(Select<RunRow>().Eq(&RunRow::id, run.id),
             {Assign(&RunRow::state, run.state), Assign(&RunRow::step, run.step),
              Assign(&RunRow::result, run.result), Assign(&RunRow::error_class, run.error_class),
              Assign(&RunRow::error, run.error), Assign(&RunRow::started_at, run.started_at),
              Assign(&RunRow::finished_at, run.finished_at),
              Assign(&RunRow::queue_expires_at, run.queue_expires_at)}));
  return {};
}

Status Ledger::AddStep(Transaction& tx, RunRow& run, const Definition& definition, size_t index) {
  const StepDefinition& next = definition.steps[index];
  StepRow step{.id = RandomId("st_", 20),
               .run_id = run.id,
               .name = next.name,
               .seq = static_cast<int64_t>(index),
               .max_attempts =
                   std::max<int64_t>(next.attempts > 0 ? next.attempts : config_.flow_attempts, 1),
               .priority = run.priority,
               .run_at = clock_.Now()};
  run.step = next.name;
  return tx.Insert(step);
}

Status Ledger::GoOn(Transaction& tx, RunRow& run, const Definition& definition, int64_t seq) {
  for (size_t i = static_cast<size_t>(seq + 1); i < definition.steps.size(); ++i) {
    if (IsEnding(run) && !definition.steps[i].always) continue;
    TRY(AddStep(tx, run, definition, i));
    return SaveRun(tx, run);
  }
  return EndRun(tx, run);
}

Status Ledger::EndRun(Transaction& tx, RunRow& run) {
  run.state = FinalState(run);
  run.finished_at = clock_.Now();
  run.queue_expires_at.reset();
  const Definition* definition = Find(run);
  if (run.state == "succeeded" && definition) {
    // The last step that is part of the work, not of the cleaning up.
    const StepDefinition* last = nullptr;
    for (const StepDefinition& step : definition->steps)
      if (!step.always || !last) last = &step;
    TRY_ASSIGN(
        auto row,
        tx.First(Select<StepRow>().Eq(&StepRow::run_id, run.id).Eq(&StepRow::name, last->name)));
    if (row) run.result = row->result;
  }
  TRY(SaveRun(tx, run));
  TRY(tx.Delete(
      Select<store::SignalRow>().Eq(&store::SignalRow::wait_key, Engine::UserKey(run.id))));
  if (definition && definition->finished) TRY(definition->finished(tx, run));
  return Changed(tx, run, nullptr);
}

std::optional<Time> Ledger::QueueExpiry() {
  if (config_.flow_queue_ttl_s <= 0) return {};
  return clock_.Now() + std::chrono::seconds(config_.flow_queue_ttl_s);
}

Status Ledger::CloseStep(Transaction& tx, RunRow& run, StepRow& step, std::string_view state,
                         ErrorClass error_class, const std::string& error) {
  step.state = state;
  step.finished_at = clock_.Now();
  step.lease_owner.clear();
  step.lease_until.reset();
  step.error = error;
  if (state == "failed") {
    step.error_class = ErrorClassName(error_class);
    // What went wrong first is why the run ends; a failed clean-up after it is told by its step.
    if (run.error_class.empty() || run.error_class == "user_action") {
      run.error_class = step.error_class;
      run.error = error;
    }
  }
  TRY(tx.Update(step));
  return Changed(tx, run, &step);
}

Status Ledger::EndStep(Transaction& tx, RunRow& run, StepRow& step, std::string_view state,
                       ErrorClass error_class, const std::string& error) {
  TRY(CloseStep(tx, run, step, state, error_class, error));
  auto definition = Match(run, step);
  return definition ? GoOn(tx, run, **definition, step.seq) : EndRun(tx, run);
}

}  // namespace caisson::flow
