#include "flow/runner.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"
#include "store/old_runs.h"

namespace caisson::flow {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Transaction;

namespace {

// Also what is due is looked for this often, should anybody forget to wake us.
constexpr milliseconds kPatience{1000};
constexpr milliseconds kRetryWrite{200};
constexpr size_t kMaxClaims = 64;  // in one transaction
constexpr int64_t kForgetBatch = 200;
constexpr std::chrono::hours kForgetInterval{1};

bool IsPassing(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kResourceExhausted ||
         error.code() == Code::kAborted || error.code() == Code::kDeadlineExceeded;
}

// What happens by itself next.
struct Next {
  std::optional<Time> step;    // one is due
  std::optional<Time> expiry;  // a run has to be given up
};
Result<Next> FindNext(Transaction& tx) {
  Next next;
  TRY_ASSIGN(next.step, store::NextStepTime(tx));
  TRY_ASSIGN(next.expiry, store::NextQueueExpiry(tx));
  return next;
}

// A step that throws has failed; one that was canceled says so with an exception of asio.
Task<Result<Outcome>> CallStep(const StepDefinition* definition, StepContext context) {
  try {
    co_return co_await definition->run(std::move(context));
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted)
      co_return Fail(Code::kCanceled, "The step was canceled.");
    co_return Fail(Code::kInternal, "The step '{}' failed: {}", definition->name, e.what());
  } catch (const std::exception& e) {
    co_return Fail(Code::kInternal, "The step '{}' failed: {}", definition->name, e.what());
  }
}

}  // namespace

Runner::Runner(asio::any_io_executor executor, store::Store& store, const Config& config)
    : executor_(executor),
      store_(store),
      config_(config),
      ledger_(config_, definitions_, store.node()),
      loops_(executor),
      lanes_(executor),
      wake_(executor),
      ending_(executor) {}

void Runner::Define(Definition definition) {
  std::string name = definition.name;
  definitions_.insert_or_assign(std::move(name), std::move(definition));
}

milliseconds Runner::lease() const {
  return milliseconds(std::max<int64_t>(config_.flow_lease_ms, 30));
}

size_t Runner::FreeLanes() const {
  if (config_.flow_workers <= 0) return kMaxClaims;
  size_t lanes = static_cast<size_t>(config_.flow_workers);
  return lanes > lanes_.size() ? std::min(lanes - lanes_.size(), kMaxClaims) : 0;
}

Engine::Numbers Runner::numbers() const {
  Engine::Numbers numbers = numbers_;
  numbers.running = running_.size();
  return numbers;
}

Task<Status> Runner::Start() {
  CO_TRY_ASSIGN(Time newest,
                co_await store_.Read([this](Transaction& tx) { return ledger_.Newest(tx); }));
  // The clock was set back since: the times in the rows count on.
  ledger_.clock().Follow(newest);
  CO_TRY(co_await Beat());
  loops_.Spawn("runs: leases", KeepLeases(shared_from_this()));
  loops_.Spawn("runs", Take(shared_from_this()));
  co_return Status();
}

Task<void> Runner::Stop() {
  Self self = shared_from_this();
  if (stopping_) co_return;
  stopping_ = true;
  wake_.Notify();
  ending_.Notify();
  for (auto& [id, running] : running_) CancelStep(running, Why::kStopped);
  if (!co_await lanes_.Join(seconds(10)))
    LogWarn("steps did not stop in time", {{"count", static_cast<int64_t>(lanes_.size())}});
  co_await loops_.Join(seconds(10));
  Status done = co_await store_.Write([this](Transaction& tx) { return ledger_.HandBack(tx); });
  if (!done)
    LogError("leases of steps could not be given back; they end by themselves",
             {{"error", done.error().message()}});
}

void Runner::Abandon() {
  stopping_ = abandoned_ = true;
  wake_.Notify();
  ending_.Notify();
  for (auto& [id, running] : running_) CancelStep(running, Why::kLost);
}

void Runner::Wake() {
  asio::dispatch(executor_, [weak = weak_from_this()] {
    Self self = weak.lock();
    if (!self) return;
    self->woken_ = true;
    self->wake_.Notify();
  });
}

void Runner::ExpectCancel(const std::string& run_id) {
  std::lock_guard lock(mutex_);
  expected_cancels_.insert(run_id);
}

void Runner::CancelStep(std::shared_ptr<Running> running, Why why) {
  if (running->why != Why::kNone) return;
  running->why = why;
  // Later, as it may run the step's end at once, under the feet of who cancels.
  asio::post(executor_, [running] { running->signal.emit(asio::cancellation_type::terminal); });
}

// ---- taking steps ----------------------------------------------------------------------------

Task<void> Runner::Take(Self self) {
  while (!self->stopping_) {
    self->woken_ = false;
    co_await self->FindCanceled();
    Time asked = self->ledger_.clock().Now();
    size_t free = self->FreeLanes();
    if (free > 0 && co_await self->ClaimSome() == free) continue;
    if (self->stopping_) break;
    auto found = co_await self->store_.Read(FindNext);
    Next next = found.value_or(Next());
    if (next.expiry && *next.expiry < asked && co_await self->GiveUp() > 0) continue;
    // What is due already and was not claimed is held back by a limit: whoever ends a step wakes
    // us, and our patience is shorter than the minute of flow_starts_per_repo.
    milliseconds wait = kPatience;
    for (const auto& time : {next.step, next.expiry})
      if (time && *time > asked)
        wait = std::clamp(std::chrono::ceil<milliseconds>(*time - self->ledger_.clock().Now()),
                          milliseconds(0), wait);
    if (!self->woken_ && !self->stopping_) co_await self->wake_.Wait(wait);
  }
}

Task<size_t> Runner::ClaimSome() {
  // After a pause of this process its leases may have ended: first find out what is still ours.
  if (LeasesAreOld())
    if (Status beat = co_await Beat(); !beat) co_return 0;
  size_t count = FreeLanes();
  auto works =
      co_await store_.Write([this, count](Transaction& tx) { return ledger_.Claim(tx, count); });
  if (abandoned_) co_return 0;
  if (!works) {
    LogError("steps could not be taken", {{"error", works.error().message()}});
    co_return 0;
  }
  // A server that stops gives them back with everything else.
  if (stopping_) co_return 0;
  for (Work& work : *works) lanes_.Spawn("step", Lane(shared_from_this(), std::move(work)));
  co_return works->size();
}

Task<size_t> Runner::GiveUp() {
  auto given_up =
      co_await store_.Write([this](Transaction& tx) { return ledger_.GiveUp(tx, kMaxClaims); });
  if (abandoned_) co_return 0;
  if (!given_up)
    LogError("runs that waited too long could not be ended",
             {{"error", given_up.error().message()}});
  if (!given_up || *given_up == 0) co_return 0;
  LogWarn("runs waited longer for their start than they may and were given up",
          {{"count", static_cast<int64_t>(*given_up)}});
  co_return *given_up;
}

Task<void> Runner::FindCanceled() {
  std::set<std::string> expected;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(expected_cancels_, [this](const std::string& run_id) {
      return std::ranges::none_of(running_,
                                  [&](const auto& item) { return item.second->run_id == run_id; });
    });
    expected = expected_cancels_;
  }
  for (const std::string& run_id : expected) {
    auto run =
        co_await store_.Read([run_id](Transaction& tx) { return tx.Get<store::RunRow>(run_id); });
    if (!run || !*run || !(*run)->cancel_at) continue;
    for (auto& [id, running] : running_)
      if (running->run_id == run_id && !running->always) CancelStep(running, Why::kCanceled);
  }
}

// ---- leases ----------------------------------------------------------------------------------

Task<void> Runner::KeepLeases(Self self) {
  while (!self->stopping_) {
    co_await self->ending_.Wait(self->lease() / 3);
    if (self->stopping_) co_return;
    Status beat = co_await self->Beat();
    if (beat) {
      co_await self->Forget();
      continue;
    }
    LogWarn("leases of steps could not be extended", {{"error", beat.error().message()}});
    if (Steady::now() - self->beat_at_ < self->lease()) continue;
    // Another server may have taken them by now.
    for (auto& [id, running] : self->running_) self->CancelStep(running, Why::kLost);
  }
}

Task<Status> Runner::Beat() {
  auto before = Steady::now();
  std::map<std::string, std::shared_ptr<Running>> known = running_;
  std::map<std::string, int64_t> held;
  for (const auto& [id, running] : known) held[id] = running->fence;
  Time now = std::max(ledger_.clock().Now(), Now());
  auto pulse = co_await store_.Write(
      [this, now, held](Transaction& tx) { return ledger_.Beat(tx, now, held); });
  if (abandoned_) co_return Status();
  if (!pulse) co_return tl::unexpected(pulse.error());
  beat_at_ = before;
  // Only now, as our leases reach beyond it.
  ledger_.clock().Follow(now);
  for (const std::string& id : pulse->lost) CancelStep(known[id], Why::kLost);
  for (const std::string& id : pulse->canceled)
    if (!known[id]->always) CancelStep(known[id], Why::kCanceled);
  if (pulse->freed) Wake();
  co_return Status();
}

Task<void> Runner::Forget() {
  if (config_.run_retention_days <= 0 || Steady::now() < forget_at_) co_return;
  Time before = Now() - std::chrono::days(config_.run_retention_days);
  auto deleted = co_await store_.Write(
      [before](Transaction& tx) { return store::DeleteOldRuns(tx, before, kForgetBatch); });
  if (!deleted) LogWarn("old runs could not be deleted", {{"error", deleted.error().message()}});
  if (deleted && *deleted > 0) LogInfo("deleted old runs", {{"count", *deleted}});
  // A full batch: there is more, after the next beat.
  if (!deleted || *deleted < kForgetBatch) forget_at_ = Steady::now() + kForgetInterval;
}

// ---- one step --------------------------------------------------------------------------------

Task<void> Runner::Lane(Self self, Work work) {
  for (;;) {
    auto running = std::make_shared<Running>();
    running->run_id = work.step.run_id;
    running->fence = work.step.fence;
    running->always = work.definition->always;
    // Ours, but its lease had ended before we knew.
    if (auto old = self->running_.find(work.step.id); old != self->running_.end())
      self->CancelStep(old->second, Why::kLost);
    self->running_[work.step.id] = running;
    self->crash_.Reached(work.step.name, "after_claim");
    Result<Outcome> outcome = co_await self->RunStep(work, running);
    std::optional<Work> next;
    if (!self->abandoned_) {
      self->crash_.Reached(work.step.name, "after_effect");
      next = co_await self->Commit(work, *running, std::move(outcome));
    }
    // Taken over and taken back again: the entry may be a later one's.
    if (auto entry = self->running_.find(work.step.id);
        entry != self->running_.end() && entry->second == running)
      self->running_.erase(entry);
    if (!next || self->stopping_) break;
    work = std::move(*next);
  }
  self->Wake();
}

Task<Result<Outcome>> Runner::RunStep(const Work& work, std::shared_ptr<Running> running) {
  StepContext context = work.context;
  context.canceled = [running] { return running->why == Why::kCanceled; };
  asio::steady_timer deadline(executor_, work.definition->timeout);
  deadline.async_wait([self = shared_from_this(), running](boost::system::error_code ec) {
    if (!ec) self->CancelStep(running, Why::kTooSlow);
  });
  auto [thrown, outcome] =
      co_await asio::co_spawn(executor_, CallStep(work.definition, std::move(context)),
                              asio::bind_cancellation_slot(running->signal.slot(), kAwait));
  // A result that came in spite of the cancellation is one.
  bool failed = thrown || !outcome || outcome->kind == Outcome::Kind::kFail;
  if (failed && running->why == Why::kTooSlow)
    co_return Fail(Code::kDeadlineExceeded, "The step '{}' took longer than {} ms.", work.step.name,
                   work.definition->timeout.count());
  if (thrown) co_return Fail(Code::kCanceled, "The step '{}' was canceled.", work.step.name);
  co_return std::move(outcome);
}

Task<std::optional<Work>> Runner::Commit(const Work& work, const Running& running,
                                         Result<Outcome> outcome) {
  if (running.why == Why::kLost) co_return std::nullopt;
  bool failed = !outcome || outcome->kind == Outcome::Kind::kFail;
  // It did not fail, it was interrupted: Stop() gives it back.
  if (running.why == Why::kStopped && failed) co_return std::nullopt;
  Outcome result = outcome ? std::move(*outcome) : Outcome::Failed(outcome.error());
  auto committed = co_await Write(work, result);
  if (!committed && !IsPassing(committed.error()) && !abandoned_) {
    // What the step wanted written was refused: that is how it ends.
    committed = co_await Write(work, Outcome::Failed(committed.error()));
  }
  if (abandoned_) co_return std::nullopt;
  if (!committed) {
    LogError("the outcome of a step could not be written; it will be run again",
             {{"run", work.step.run_id},
              {"step", work.step.name},
              {"error", committed.error().message()}});
    co_return std::nullopt;
  }
  crash_.Reached(work.step.name, "after_commit");
  if (committed->verdict == Verdict::kLate)
    LogWarn("a step was taken over by another server; this one's outcome is dropped",
            {{"run", work.step.run_id}, {"step", work.step.name}});
  Count(committed->verdict);
  if (committed->next.empty()) co_return std::nullopt;
  co_return std::move(committed->next.front());
}

Task<Result<Runner::Committed>> Runner::Write(const Work& work, Outcome outcome) {
  // With a crash point every boundary between steps is one between transactions.
  bool chain = !stopping_ && !crash_.set() && !LeasesAreOld();
  for (;;) {
    auto done = co_await store_.Write(
        [this, chain, step = work.step, outcome](Transaction& tx) -> Result<Committed> {
          Committed committed;
          TRY_ASSIGN(committed.verdict, ledger_.Finish(tx, step, outcome));
          if (chain) {
            TRY_ASSIGN(committed.next, ledger_.Claim(tx, 1));
          }
          return committed;
        });
    if (done || !IsPassing(done.error()) || abandoned_) co_return done;
    // The database is away for a moment. As long as the lease lasts, the work is not lost.
    if (Steady::now() - beat_at_ > lease()) co_return done;
    co_await SleepFor(kRetryWrite);
  }
}

void Runner::Count(Verdict verdict) {
  if (verdict == Verdict::kDone) ++numbers_.done;
  if (verdict == Verdict::kFailed) ++numbers_.failed;
  if (verdict == Verdict::kRetried) ++numbers_.retried;
}

}  // namespace caisson::flow
