// The ends of a sandbox: asked for, timed out, or by itself. All go the same way: out of traffic at
// once, then destroyed, then written down.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

constexpr int kDestroyAttempts = 8;  // with doubling pauses: about four minutes in all
constexpr std::chrono::milliseconds kFirstPause{1000};

}  // namespace

Ending EndingOf(engine::ExitReason reason) {
  std::string name(engine::ExitReasonName(reason));
  switch (reason) {
    case engine::ExitReason::kEnvdExited:
      return {name, "The sandbox ended by itself: its first process (envd) exited", "error"};
    case engine::ExitReason::kEnvdKilled:
      return {name, "The sandbox ended: its first process (envd) was killed", "error"};
    case engine::ExitReason::kOutOfMemory:
      return {name, "The sandbox ended: it ran out of memory and its first process was killed",
              "error"};
    case engine::ExitReason::kUnknown:
      break;
  }
  return {name, "The sandbox ended for an unknown reason", "error"};
}

bool Manager::Impl::Detach(Record& record) {
  if (!registry_.Remove(record)) return false;
  expiry_.Remove(record.row.id);
  held_.erase(record.row.id);
  return true;
}

std::shared_ptr<Record> Manager::Impl::TakeOut(const std::string& id) {
  auto record = registry_.Find(id);
  if (record) {
    Detach(*record);
  } else if (auto it = paused_.find(id); it != paused_.end()) {
    record = it->second;
    paused_.erase(it);
    expiry_.Remove(id);
  }
  if (record) turns_.MarkKilled(id);
  return record;
}

Task<Status> Manager::Impl::Kill(std::string key_id, std::string id) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  TakeOut(id);
  co_return co_await Shield(operations_, "kill",
                            Finish(record, {"request", "Sandbox killed on request of its owner"}));
}

Task<Status> Manager::Impl::Finish(std::shared_ptr<Record> record, Ending ending) {
  std::string id = record->row.id;
  LogInfo("sandbox ended", {{"sandbox", id}, {"reason", ending.reason}});
  // Whoever pauses or resumes it has heard of its end and leaves it alone afterwards.
  bool saved = !turns_.Doing(id).empty() || record->row.state == "paused";
  co_await turns_.AwaitFree(id);
  Status destroyed = co_await Erase(id, saved);
  if (!destroyed) {
    LogError("a sandbox could not be destroyed; it will be tried again",
             {{"sandbox", id}, {"error", destroyed.error().message()}});
    background_.Spawn("destroy", DestroyLater(id));
  }
  co_await WriteEnd(record->row, std::move(ending));
  if (!destroyed)
    co_return Fail(Code::kInternal,
                   "the sandbox is stopped, but not all of it could be removed yet; the server "
                   "tries again");
  co_return Status();
}

Task<void> Manager::Impl::FinishAlone(std::shared_ptr<Record> record, Ending ending) {
  (void)co_await Finish(std::move(record), std::move(ending));  // logged there
}

Task<void> Manager::Impl::WriteEnd(store::SandboxRow row, Ending ending) {
  row.state = "killed";
  row.reason = ending.reason;
  row.ended_at = Now();
  StringMap fields{{"reason", ending.reason}};
  if (ending.reason == "request") fields["key"] = row.key_id;  // nobody else can ask for it
  auto event = MakeEvent(row.id, "killed", std::move(ending.message), std::move(fields),
                         std::move(ending.level));
  Status stored = co_await store_.UpdateSandbox(row, std::move(event));
  if (!stored)
    LogError("the end of a sandbox could not be recorded",
             {{"sandbox", row.id}, {"error", stored.error().message()}});
}

Task<void> Manager::Impl::DestroyLater(std::string id) {
  auto pause = kFirstPause;
  for (int attempt = 0; attempt < kDestroyAttempts; ++attempt) {
    co_await SleepFor(pause);
    pause *= 2;
    if (co_await Erase(id, /*saved=*/true)) co_return;
  }
  LogError("a sandbox could not be destroyed; restart the server to try again", {{"sandbox", id}});
}

Task<void> Manager::Impl::DestroyNow(std::string id, bool saved) {
  if (!co_await Erase(id, saved)) background_.Spawn("destroy", DestroyLater(id));
}

Task<Status> Manager::Impl::Erase(std::string id, bool saved) {
  CO_TRY(co_await engine_.Destroy(id));
  if (saved) CO_TRY(co_await engine_.DeleteSaved(id));
  co_return Status();
}

void Manager::Impl::OnExpired(const std::string& id) {
  auto running = registry_.Find(id);
  if (running && running->row.auto_pause && running->failed_pauses < kMaxFailedPauses)
    return operations_.Spawn("pause at the end of its time", PauseAtEnd(id));
  Ending ending{"timeout", "Sandbox killed: its timeout has passed"};
  if (running && running->row.auto_pause)
    ending = {"pause_failed", "Sandbox killed: its longest life is over and it cannot be paused",
              "error"};
  if (!running)
    ending = {
        "paused_retention",
        fmt::format("Sandbox deleted: it was paused for {} days, as long as this server keeps "
                    "paused sandboxes",
                    config_.paused_retention_days)};
  if (auto record = TakeOut(id)) operations_.Spawn("timeout", FinishAlone(record, ending));
}

// All its times are those of the clock as it is now, so that its longest life ends when it should.
void Manager::Impl::OnClockSet(const std::string& id, std::chrono::nanoseconds by) {
  auto record = registry_.Find(id);
  if (auto it = paused_.find(id); !record && it != paused_.end()) record = it->second;
  if (!record) return;
  if (record->running) record->row.started_at += by;
  record->row.end_at += by;
  auto seconds = std::chrono::round<std::chrono::seconds>(by).count();
  background_.Spawn(
      "clock",
      WriteClockSet(record->row,
                    MakeEvent(id, "clock_set",
                              fmt::format("The server's clock was set by {} s, and the times of "
                                          "this sandbox moved along",
                                          seconds),
                              {{"seconds", std::to_string(seconds)}}, "warn")));
}

Task<void> Manager::Impl::WriteClockSet(store::SandboxRow row, store::SandboxEvent event) {
  std::string id = row.id;
  if (Status stored = co_await WriteChange(std::move(row), std::move(event)); !stored)
    LogError("a clock that was set could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
}

void Manager::Impl::OnExit(const std::string& id, engine::ExitReason reason) {
  if (auto it = creating_.find(id); it != creating_.end()) {
    it->second.exited = reason;
  } else if (auto ready = pool_.Remove(id)) {
    LogWarn("a sandbox that was kept ready has ended",
            {{"sandbox", id}, {"reason", engine::ExitReasonName(reason)}});
    Discard(std::move(ready));
  } else if (registry_.Find(id)) {
    operations_.Spawn("exit", FinishAlone(TakeOut(id), EndingOf(reason)));
  } else if (!turns_.MarkExited(id, reason)) {
    // Of what is saved on disk no process is left that could end.
    auto paused = paused_.find(id);
    if (paused != paused_.end() && paused->second->row.saved_tier == "frozen")
      operations_.Spawn("exit", FinishAlone(TakeOut(id), EndingOf(reason)));
  }
}

}  // namespace caisson::sandbox
