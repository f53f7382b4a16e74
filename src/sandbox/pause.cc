// Putting a sandbox away. Every pause goes one way: out of traffic, saved by the engine, written
// down; a sandbox that could not be saved runs on.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::seconds kFirstRetry{10};  // doubles with each failure

}  // namespace

Task<Status> Manager::Impl::PauseOwned(std::string key_id, std::string id, bool memory,
                                       bool healthy) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (healthy && record->running) {
    Status alive = co_await WithDeadline(std::chrono::milliseconds(config_.envd_timeout_ms),
                                         "asking envd", CheckHealth(record));
    if (!alive)
      co_return Fail(Code::kUnavailable,
                     "sandbox '{}' was not paused and runs on: its envd does not answer", id);
  }
  co_return co_await Shield(operations_, "pause", Pause(std::move(id), memory, "request"));
}

Task<Status> Manager::Impl::Pause(std::string id, bool memory, std::string reason) {
  CO_TRY_ASSIGN(Turns::Turn turn, co_await turns_.Take(id, "is being paused"));
  auto record = registry_.Find(id);
  if (!record) co_return NotRunning(id);
  expiry_.FollowClock();
  if (reason == "timeout" && record->row.end_at > Now()) {
    expiry_.Set(id, record->row.end_at);  // it was given more time while this waited
    co_return Status();
  }
  // What the operator wants saved is saved, whatever a key may keep.
  if (reason != "shutdown" && reason != "drain") CO_TRY(CheckPausedQuota(record->row.key_id));
  if (held_.contains(id))
    co_return Fail(Code::kUnavailable,
                   "sandbox '{}' was not paused: it stands still until the server's disk has room",
                   id);

  store::SandboxRow before = record->row;
  Detach(*record);
  record->row.state = "paused";
  record->row.end_at = std::chrono::floor<std::chrono::microseconds>(Now());
  paused_.emplace(id, record);
  auto saved = co_await engine_.Pause(id, memory, save_timeout_);
  bool running = false;
  if (!saved) {
    // It may have been saved all the same: an answer that came too late, an engine that stopped.
    Whereabouts found = co_await Locate(id);
    running = found.running;
    if (!found.running && found.saved) saved = *found.saved;
  }
  if (turn.killed()) co_return Fail(Code::kNotFound, "sandbox '{}' was killed meanwhile", id);
  if (!saved) {
    Error told = SaveFailure(id, "paused", saved.error());
    co_await RunOn(record, before, reason, told, running, turn.exited());
    co_return tl::unexpected(std::move(told));
  }
  MarkPaused(record->row, *saved);
  auto event = MakeEvent(id, "paused", fmt::format("Sandbox paused ({})", reason),
                         SavedFields(record->row, reason));
  if (saved->tier == engine::Tier::kFrozen) {
    event.level = "warn";
    event.message += ": it stands still in memory, because " + saved->why_frozen;
  }
  LogInfo("sandbox paused", {{"sandbox", id}, {"reason", reason}, {"tier", TierName(saved->tier)}});
  Status stored = co_await store_.UpdateSandbox(record->row, std::move(event));
  // It is paused, and a new server process would find out by asking the engine.
  if (!stored)
    LogError("a pause could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
  if (!turn.killed()) ShowPaused(record);
  co_return Status();
}

Task<void> Manager::Impl::PauseAtEnd(std::string id) {
  auto record = registry_.Find(id);
  if (!record) co_return;
  if (held_.contains(id))  // no attempt: it will be saved when the disk has room
    co_return expiry_.Set(id, std::chrono::floor<std::chrono::microseconds>(Now()) + kFirstRetry);
  // The last attempt saves what can be saved.
  bool memory = record->row.auto_pause_memory && record->failed_pauses + 1 < kMaxFailedPauses;
  Status paused = co_await Pause(id, memory, "timeout");
  record = registry_.Find(id);
  if (paused || !record || record->row.end_at > Now()) co_return;
  ++record->failed_pauses;
  Time now = std::chrono::floor<std::chrono::microseconds>(Now());
  Time latest = record->row.started_at + limiter_.LongestTimeout(record->row.key_id);
  Time next = now + kFirstRetry * (1 << (record->failed_pauses - 1));
  if (record->failed_pauses == kMaxFailedPauses) next = std::max(latest, next);
  record->row.end_at = next;
  expiry_.Set(id, next);
  std::string text = FormatTime(next);
  Status stored = co_await WriteChange(
      record->row,
      MakeEvent(id, "timeout_set",
                fmt::format("The end was set to {}: the sandbox could not be paused (attempt {}): "
                            "{}",
                            text, record->failed_pauses, paused.error().message()),
                {{"end_at", text},
                 {"reason", "pause_failed"},
                 {"attempt", std::to_string(record->failed_pauses)}},
                "error"));
  if (!stored)
    LogError("an event could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
}

Status Manager::Impl::CheckPausedQuota(const std::string& key_id) const {
  int64_t most = config_.max_paused_per_key;
  int64_t own = std::count_if(paused_.begin(), paused_.end(),
                              [&](const auto& one) { return one.second->row.key_id == key_id; });
  if (most > 0 && own >= most)
    return Fail(Code::kResourceExhausted,
                "this API key already has {} paused sandboxes, as many as it may; kill one", own);
  return {};
}

Task<Manager::Impl::Whereabouts> Manager::Impl::Locate(std::string id) {
  Whereabouts found;
  auto instances = co_await engine_.List();
  auto saved = co_await engine_.GetSaved(id);
  // If nobody can tell, the engine's promise stands: what could not be saved runs on.
  if (!instances || !saved) {
    found.known = false;
    found.running = true;
    co_return found;
  }
  found.running = std::any_of(instances->begin(), instances->end(),
                              [&](const engine::Instance& one) { return one.id == id; });
  found.saved = std::move(*saved);
  // What is frozen is both.
  if (found.saved && found.saved->tier == engine::Tier::kFrozen) found.running = false;
  co_return found;
}

void Manager::Impl::MarkPaused(store::SandboxRow& row, const engine::Saved& saved) {
  row.state = "paused";
  row.saved_tier = TierName(saved.tier);
  row.saved_why = saved.why_frozen;
  row.saved_memory_bytes = saved.memory_bytes;
  row.saved_disk_bytes = saved.disk_bytes;
}

StringMap Manager::Impl::SavedFields(const store::SandboxRow& row, std::string reason) {
  StringMap fields{{"reason", std::move(reason)},
                   {"tier", row.saved_tier},
                   {"memory_bytes", std::to_string(row.saved_memory_bytes)},
                   {"disk_bytes", std::to_string(row.saved_disk_bytes)}};
  if (!row.saved_why.empty()) fields["why"] = row.saved_why;
  return fields;
}

void Manager::Impl::ShowPaused(std::shared_ptr<Record> record) {
  const std::string& id = record->row.id;
  if (config_.paused_retention_days > 0)
    expiry_.Set(id, record->row.end_at + std::chrono::hours(24 * config_.paused_retention_days));
  paused_.insert_or_assign(id, std::move(record));
}

Task<void> Manager::Impl::RunOn(std::shared_ptr<Record> record, store::SandboxRow row,
                                std::string reason, Error error, bool running,
                                std::optional<engine::ExitReason> exited) {
  const std::string id = row.id;
  paused_.erase(id);
  record->row = row;
  if (!running || exited) {
    Ending ending = exited ? EndingOf(*exited)
                           : Ending{"lost", "The sandbox ended while it was being paused", "error"};
    operations_.Spawn("exit", FinishAlone(std::move(record), std::move(ending)));
    co_return;
  }
  auto again = MakeRecord(std::move(row), secret_);
  again->history = std::move(record->history);
  again->means = std::move(record->means);
  again->alarms = record->alarms;
  again->route.private_ports = std::move(record->route.private_ports);
  again->failed_pauses = record->failed_pauses;
  Show(again);
  // At the end of its time PauseAtEnd() decides how long it goes on.
  if (reason != "timeout") expiry_.Set(id, again->row.end_at);
  co_await WriteEvent(MakeEvent(
      id, "pause_failed",
      fmt::format("The sandbox could not be paused ({}) and runs on: {}", reason, error.message()),
      {{"reason", reason}}, "error"));
}

Error Manager::Impl::SaveFailure(const std::string& id, std::string_view doing,
                                 const Error& error) const {
  // SECURITY: the engine's text may name paths of the host; only the texts that are about the
  // sandbox itself are passed on.
  LogError("a sandbox could not be saved or continued", {{"sandbox", id},
                                                         {"doing", doing},
                                                         {"code", CodeName(error.code())},
                                                         {"error", error.message()}});
  switch (error.code()) {
    case Code::kFailedPrecondition:
    case Code::kDataLoss:
    case Code::kOutOfRange:
    case Code::kUnimplemented:
      return Error(error.code(),
                   fmt::format("sandbox '{}' could not be {}: {}", id, doing, error.message()));
    case Code::kResourceExhausted:
      return Error(Code::kUnavailable,
                   fmt::format("sandbox '{}' could not be {}: this server has no room for it now; "
                               "try again later",
                               id, doing));
    case Code::kDeadlineExceeded:
      return Error(Code::kUnavailable,
                   fmt::format("sandbox '{}' could not be {} within {} ms; try again later", id,
                               doing, config_.save_timeout_ms));
    case Code::kUnavailable:
    case Code::kCanceled:
      return Error(Code::kUnavailable,
                   fmt::format("sandbox '{}' could not be {} now; try again later", id, doing));
    default:
      return Error(
          Code::kInternal,
          fmt::format("sandbox '{}' could not be {}; the server's log says why", id, doing));
  }
}

Status Manager::Impl::NotRunning(const std::string& id) const {
  if (paused_.contains(id))
    return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first", id);
  return Fail(Code::kNotFound, "sandbox '{}' does not exist or has ended", id);
}

}  // namespace caisson::sandbox
