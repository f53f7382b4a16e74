// What happens to the rows of runs and steps, and when: all of it inside transactions, on the
// store's thread. Nothing here waits or runs a step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "flow/clock.h"
#include "flow/crash_point.h"
#include "flow/definition.h"
#include "flow/engine.h"

namespace caisson::flow {

// A step that was claimed, ready to run.
struct Work {
  store::StepRow step;
  const StepDefinition* definition = nullptr;
  StepContext context;
};

// What became of a step whose outcome was written.
enum class Verdict { kLate, kDone, kWaiting, kRetried, kFailed, kCanceled };

// What a heartbeat found.
struct Pulse {
  std::set<std::string> lost;      // ids of steps that are another's by now
  std::set<std::string> canceled;  // ids of steps whose run was asked to stop
  bool freed = false;              // leases of dead processes were ended
};

class Ledger {
 public:
  // Both outlive it. `definitions` do not change once the first run is started. `node` is this
  // server among those of the database, "" = the only one.
  Ledger(const Config& config, const std::map<std::string, Definition>& definitions,
         std::string node = "");

  Clock& clock() { return clock_; }

  // See Engine.
  Status StartRun(store::Transaction& tx, const StartOptions& options);
  Result<bool> Signal(store::Transaction& tx, const std::string& key, const json::object& data);
  Result<bool> Cancel(store::Transaction& tx, const std::string& run_id, const std::string& reason);
  Status Redrive(store::Transaction& tx, const std::string& run_id, const std::string& step);

  // Takes up to `count` steps that are due. Those that need not run (their run was canceled, is
  // unknown here, or they were begun too often) are brought to their end on the way; those of runs
  // that live at another server are left to it.
  Result<std::vector<Work>> Claim(store::Transaction& tx, size_t count);
  // Ends up to `count` runs that were not begun in time, and tells why. Returns how many. Nothing
  // was done for them, so nothing is cleaned up.
  Result<size_t> GiveUp(store::Transaction& tx, size_t count);
  // Writes the outcome and what follows from it, unless the step is another's by now (kLate).
  Result<Verdict> Finish(store::Transaction& tx, const store::StepRow& claimed,
                         const Outcome& outcome);
  // Says that this server is there, and extends the leases of these steps, by id and fence. Others
  // that this engine claimed without knowing it (the answer of the database was lost) are left to
  // end. Ends the leases of processes that are known to be dead.
  Result<Pulse> Beat(store::Transaction& tx, Time now, const std::map<std::string, int64_t>& held);
  // Gives back everything this engine holds, as if it had never been claimed.
  Status HandBack(store::Transaction& tx);
  // The newest moment in the database.
  Result<Time> Newest(store::Transaction& tx);

 private:
  const Definition* Find(const store::RunRow& run) const;
  // The definition that fits the run, or a sentence that says why none does.
  Result<const Definition*> Match(const store::RunRow& run, const store::StepRow& step) const;
  Status Changed(store::Transaction& tx, const store::RunRow& run, const store::StepRow* step);

  // ---- claim.cc
  Result<std::optional<Work>> Prepare(store::Transaction& tx, store::StepRow step,
                                      store::RunRow run);
  Result<StepContext> MakeContext(store::Transaction& tx, const store::StepRow& step,
                                  const store::RunRow& run, std::string& input_hash);
  // Whether another server has to go on with the run; it is written down which one. What the run
  // had at one that is lost is given up.
  Result<bool> IsElsewhere(store::Transaction& tx, const Definition& definition,
                           store::RunRow& run);
  Result<bool> IsLost(store::Transaction& tx, const std::string& node);
  Time LostBefore();
  Status SayHere(store::Transaction& tx, Time now);
  // As if the step had never been claimed.
  Status GiveBack(store::Transaction& tx, const store::StepRow& step);
  // Begins a step that was claimed: writes what a first start changes.
  Status Begin(store::Transaction& tx, store::StepRow& step, store::RunRow& run,
               const std::string& input_hash);

  // ---- finish.cc
  Result<Verdict> Sleep(store::Transaction& tx, store::RunRow& run, store::StepRow& step,
                        const Outcome& outcome);
  Result<Verdict> FailStep(store::Transaction& tx, store::RunRow& run, store::StepRow& step,
                           const Outcome& outcome, bool always);

  // ---- progress.cc
  // When a run that begins to wait for its start now is given up.
  std::optional<Time> QueueExpiry();
  // Ends a step that will not run: "failed" or "canceled".
  Status CloseStep(store::Transaction& tx, store::RunRow& run, store::StepRow& step,
                   std::string_view state, ErrorClass error_class, const std::string& error);
  // The same; the run goes on or ends.
  Status EndStep(store::Transaction& tx, store::RunRow& run, store::StepRow& step,
                 std::string_view state, ErrorClass error_class, const std::string& error);
  // Adds the next step after place `seq`, or ends the run.
  Status GoOn(store::Transaction& tx, store::RunRow& run, const Definition& definition,
              int64_t seq);
  Status AddStep(store::Transaction& tx, store::RunRow& run, const Definition& definition,
                 size_t index);
  Status EndRun(store::Transaction& tx, store::RunRow& run);
  // Writes the columns of a run that steps change; never its cancel columns, which others write.
  Status SaveRun(store::Transaction& tx, const store::RunRow& run);

  const Config& config_;
  const std::map<std::string, Definition>& definitions_;
  const std::string node_;
  Clock clock_;
  CrashPoint crash_;
  std::string owner_;
};

}  // namespace caisson::flow
