// What the outcome of a step changes, in one transaction.
#include <boost/json/serialize.hpp>

#include "flow/ledger.h"
#include "flow/retry.h"

namespace caisson::flow {

using store::Assign;
using store::RunRow;
using store::Select;
using store::SignalRow;
using store::StepRow;
using store::Transaction;

namespace {

// Takes the signal that came early, "" if none did.
Result<std::string> TakeSignal(Transaction& tx, const std::string& key) {
  TRY_ASSIGN(auto kept, tx.Get<SignalRow>(key));
  if (!kept) return std::string();
  TRY(tx.Delete(Select<SignalRow>().Eq(&SignalRow::wait_key, key)));
  return kept->data;
}

}  // namespace

Result<Verdict> Ledger::Finish(Transaction& tx, const StepRow& claimed, const Outcome& outcome) {
  // The lease is given up first, and only by who holds it: from here on the row is ours, and a
  // writer that comes late changes nothing.
  TRY_ASSIGN(int64_t held, tx.Set(Select<StepRow>()
                                      .Eq(&StepRow::id, claimed.id)
                                      .Eq(&StepRow::fence, claimed.fence)
                                      .Eq(&StepRow::lease_owner, owner_)
                                      .Eq(&StepRow::state, "running"),
                                  {Assign(&StepRow::lease_owner, ""),
                                   Assign(&StepRow::lease_until, std::optional<Time>())}));
  if (held == 0) return Verdict::kLate;
  StepRow step = claimed;
  step.lease_owner.clear();
  step.lease_until.reset();
  TRY_ASSIGN(RunRow run, tx.Need<RunRow>(step.run_id, "run"));
  TRY_ASSIGN(const Definition* definition, Match(run, step));
  bool always = definition->steps[static_cast<size_t>(step.seq)].always;
  if (outcome.also) TRY(outcome.also(tx));

  if (outcome.kind == Outcome::Kind::kDone) {
    step.state = "done";
    step.result = json::serialize(outcome.result);
    step.error_class = step.error = step.signal = step.wait_key = "";
    step.wait_until.reset();
    step.finished_at = clock_.Now();
    TRY(tx.Update(step));
    TRY(Changed(tx, run, &step));
    TRY(GoOn(tx, run, *definition, step.seq));
    return Verdict::kDone;
  }
  if (run.cancel_at && !always) {
    TRY(EndStep(tx, run, step, "canceled", ErrorClass::kFatal, run.cancel_reason));
    return Verdict::kCanceled;
  }
  if (outcome.kind == Outcome::Kind::kWait) return Sleep(tx, run, step, outcome);
  return FailStep(tx, run, step, outcome, always);
}

Result<Verdict> Ledger::Sleep(Transaction& tx, RunRow& run, StepRow& step, const Outcome& outcome) {
  step.wait_key = outcome.wait_key;
  step.wait_until.reset();
  if (outcome.wait.count() > 0) step.wait_until = clock_.Now() + outcome.wait;
  step.attempt -= 1;  // a wait is no attempt
  TRY_ASSIGN(step.signal, TakeSignal(tx, step.wait_key));
  step.state = step.signal.empty() ? "waiting" : "ready";
  step.run_at = clock_.Now();
  TRY(tx.Update(step));
  run.state = step.signal.empty() ? "waiting" : "queued";
  TRY(SaveRun(tx, run));
  TRY(Changed(tx, run, &step));
  return Verdict::kWaiting;
}

Result<Verdict> Ledger::FailStep(Transaction& tx, RunRow& run, StepRow& step,
                                 const Outcome& outcome, bool always) {
  step.error_class = ErrorClassName(outcome.error_class);
  step.error = outcome.error;
  // Cleaning up after a failure asks nobody: the run has its reason already.
  bool asks = outcome.error_class == ErrorClass::kUserAction && !always;
  if (asks) {
    run.error_class = step.error_class;
    run.error = step.error;
    Outcome wait = Outcome::Wait(Engine::UserKey(run.id), std::chrono::milliseconds(0));
    step.attempt = 1;
    return Sleep(tx, run, step, wait);
  }
  if (outcome.error_class == ErrorClass::kTransient && step.attempt < step.max_attempts) {
    step.state = "ready";
    step.run_at = clock_.Now() + RetryDelay(step.attempt, outcome.retry_after,
                                            config_.flow_retry_min_ms, config_.flow_retry_max_ms);
    TRY(tx.Update(step));
    TRY(Changed(tx, run, &step));
    return Verdict::kRetried;
  }
  ErrorClass error_class = outcome.error_class == ErrorClass::kUserAction ? ErrorClass::kPersistent
                                                                          : outcome.error_class;
  TRY(EndStep(tx, run, step, "failed", error_class, outcome.error));
  return Verdict::kFailed;
}

}  // namespace caisson::flow
