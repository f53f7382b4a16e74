// At the start: what the store remembers against what the engine has. The engine is the truth.
//
//   row      engine            then
//   running  running           adopted; ended or paused if its time has passed meanwhile
//   running  saved or frozen   paused: the server stopped before it could write so down
//   running  nothing           the row is ended, with the reason as far as it can be told
//   paused   saved or frozen   adopted
//   paused   running           running: the server stopped before it could write so down
//   paused   nothing           the row is ended: what was saved is lost, or the host, in whose
//                              memory it was frozen, was restarted
//   none     anything          destroyed: nobody knows it
//
// A snapshot whose saved state is gone is forgotten.
#include <unordered_set>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/manager_impl.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::seconds kLongestCleanup{60};

// When this machine was started; the epoch if the kernel does not say.
Time BootTime() {
  auto text = ReadFile("/proc/stat");
  if (!text) return {};
  for (std::string_view line : Split(*text, '\n'))
    if (line.starts_with("btime "))
      return Time(std::chrono::seconds(ParseInt<int64_t>(line.substr(6)).value_or(0)));
  return {};
}

}  // namespace

Task<Status> Manager::Impl::Adopt() {
  CO_TRY_ASSIGN(auto rows, co_await store_.ListLiveSandboxes());
  CO_TRY_ASSIGN(auto snapshots, co_await store_.ListSnapshots());
  CO_TRY_ASSIGN(auto instances, co_await engine_.List());
  CO_TRY_ASSIGN(auto list, co_await engine_.ListSaved());
  std::unordered_set<std::string> alive;
  for (const engine::Instance& instance : instances) alive.insert(instance.id);
  std::map<std::string, engine::Saved> saved;
  for (engine::Saved& one : list) saved.emplace(one.id, std::move(one));
  // What is frozen has processes, but does not run.
  for (const auto& [id, one] : saved)
    if (one.tier == engine::Tier::kFrozen) alive.erase(id);

  AdoptSnapshots(std::move(snapshots), saved);
  Time booted = BootTime();
  for (store::SandboxRow& row : rows) {
    last_start_ = std::max(last_start_, row.started_at);
    bool running = alive.erase(row.id) > 0;
    auto state = saved.extract(row.id);
    AdoptRow(std::move(row), running, state.empty() ? nullptr : &state.mapped(), booted);
  }
  for (const std::string& id : alive) DestroyOrphan(id, /*saved=*/false);
  for (const auto& [id, one] : saved) DestroyOrphan(id, /*saved=*/true);
  if (rows.size() + alive.size() + saved.size() > 0)
    LogInfo("sandboxes of the server before", {{"known", rows.size()},
                                               {"running", registry_.size()},
                                               {"snapshots", snapshots_.size()},
                                               {"unknown", alive.size() + saved.size()}});
  if (!co_await operations_.Join(kLongestCleanup))
    LogWarn("cleaning up after the server before goes on in the background",
            {{"operations", operations_.size()}});
  co_return Status();
}

void Manager::Impl::AdoptSnapshots(std::vector<store::SnapshotRow> rows,
                                   std::map<std::string, engine::Saved>& saved) {
  for (store::SnapshotRow& row : rows) {
    if (saved.erase(row.id) > 0) {
      snapshots_.emplace(row.id, std::move(row));
    } else {
      LogError("the files of a snapshot are gone; it is forgotten",
               {{"snapshot", row.id}, {"name", SnapshotName(row)}});
      operations_.Spawn("forget snapshot", ForgetSnapshot(row.id));
    }
  }
}

void Manager::Impl::AdoptRow(store::SandboxRow row, bool running, const engine::Saved* saved,
                             Time booted) {
  const Ending kRestarted{"host_restarted", "The sandbox ended: the host was restarted", "error"};
  const Ending kServerDown{"server_down", "The sandbox ended while the server was down", "error"};
  bool paused = row.state == "paused";
  if (running && !paused) {
    AdoptRunning(std::move(row));
  } else if (running) {
    operations_.Spawn("adopt", AdoptResumed(std::move(row)));
  } else if (saved) {
    operations_.Spawn("adopt", AdoptPaused(std::move(row), *saved));
  } else if (paused) {
    bool frozen = row.saved_tier == engine::TierName(engine::Tier::kFrozen) && row.end_at < booted;
    operations_.Spawn("end", EndLost(std::move(row), frozen ? kRestarted : kSavedStateLost));
  } else {
    bool restarted = row.started_at < booted;
    operations_.Spawn("end", EndLost(std::move(row), restarted ? kRestarted : kServerDown));
  }
}

void Manager::Impl::AdoptRunning(store::SandboxRow row) {
  auto record = MakeRecord(std::move(row), secret_);
  record->alarms = Alarms(/*fresh=*/false);
  Show(record);
  if (!record->row.idempotency_key.empty())
    idempotency_.Restore(record->row.idempotency_key, record->row.request_hash, MakeInfo(*record));
  if (record->row.end_at <= Now())
    OnExpired(record->row.id);
  else
    expiry_.Set(record->row.id, record->row.end_at);
  if (record->row.secure) background_.Spawn("greeting", Greet(record->row));
}

// Its envd may be one of a server before there were inside tokens.
Task<void> Manager::Impl::Greet(store::SandboxRow row) {
  const std::string id = row.id;
  Status told = co_await InitEnvd(std::move(row), id, /*reset_identity=*/false);
  if (!told && registry_.Find(id))
    LogWarn("an envd does not answer the new server",
            {{"sandbox", id}, {"error", told.error().message()}});
}

Task<void> Manager::Impl::AdoptPaused(store::SandboxRow row, engine::Saved saved) {
  bool was_running = row.state != "paused";
  MarkPaused(row, saved);
  if (was_running) row.end_at = std::chrono::floor<std::chrono::microseconds>(Now());
  auto record = MakeRecord(row, secret_);
  record->alarms = Alarms(/*fresh=*/false);
  record->running = false;
  ShowPaused(record);
  if (!row.idempotency_key.empty())
    idempotency_.Restore(row.idempotency_key, row.request_hash, MakeInfo(*record));
  if (!was_running) co_return;
  Status stored = co_await store_.UpdateSandbox(
      row, MakeEvent(row.id, "paused", "Sandbox paused; the server was restarted meanwhile",
                     SavedFields(row, "server_restarted")));
  if (!stored)
    LogError("a pause could not be recorded",
             {{"sandbox", row.id}, {"error", stored.error().message()}});
}

Task<void> Manager::Impl::AdoptResumed(store::SandboxRow row) {
  auto record = MakeRecord(row, secret_);
  record->alarms = Alarms(/*fresh=*/false);
  record->running = false;
  paused_.emplace(row.id, record);
  Status told = co_await InitEnvd(row, row.secure ? row.id : "", false);
  if (!told) co_return co_await PutBack(record, told.error());
  std::chrono::seconds timeout(std::max(row.timeout_s, config_.auto_resume_timeout_s));
  timeout = std::min(timeout, limiter_.LongestTimeout(row.key_id));
  (void)co_await Reopen(record, std::move(row), timeout, "server_restarted", /*continued=*/true);
}

Task<void> Manager::Impl::EndLost(store::SandboxRow row, Ending ending) {
  // There may be traces left even if nothing lives.
  std::string id = row.id;
  co_await DestroyNow(id, row.state == "paused");
  co_await WriteEnd(std::move(row), std::move(ending));
}

void Manager::Impl::DestroyOrphan(const std::string& id, bool saved) {
  LogWarn("destroying a sandbox or snapshot that is not in the database", {{"id", id}});
  operations_.Spawn("destroy", DestroyNow(id, saved));
}

Task<void> Manager::Impl::ForgetSnapshot(std::string id) {
  if (Status deleted = co_await store_.DeleteSnapshot(id); !deleted)
    LogError("a snapshot could not be forgotten",
             {{"snapshot", id}, {"error", deleted.error().message()}});
}

}  // namespace caisson::sandbox
