// At the start: what the store remembers against what the engine finds alive.
//
//   row    instance   then
//   yes    yes        adopted; ended if its time has passed meanwhile
//   yes    no         the row is ended, with the reason as far as it can be told
//   no     yes        destroyed: nobody knows it
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
  CO_TRY_ASSIGN(auto instances, co_await engine_.List());
  std::unordered_set<std::string> alive;
  for (const engine::Instance& instance : instances) alive.insert(instance.id);

  const Ending kRestarted{"host_restarted", "The sandbox ended: the host was restarted", "error"};
  const Ending kServerDown{"server_down", "The sandbox ended while the server was down", "error"};
  Time booted = BootTime();
  size_t adopted = 0, lost = 0;
  for (store::SandboxRow& row : rows) {
    last_start_ = std::max(last_start_, row.started_at);
    if (alive.erase(row.id) == 0) {
      ++lost;
      bool restarted = row.started_at < booted;
      operations_.Spawn("end lost", EndLost(std::move(row), restarted ? kRestarted : kServerDown));
      continue;
    }
    ++adopted;
    auto record = MakeRecord(std::move(row), secret_);
    record->alarms = Alarms(/*fresh=*/false);
    registry_.Add(record);
    if (!record->row.idempotency_key.empty())
      idempotency_.Restore(record->row.idempotency_key, record->row.request_hash,
                           MakeInfo(*record));
    if (record->row.end_at <= Now())
      OnExpired(record->row.id);
    else
      expiry_.Set(record->row.id, record->row.end_at);
  }
  for (const std::string& id : alive) {
    LogWarn("destroying a sandbox that is not in the database", {{"sandbox", id}});
    operations_.Spawn("destroy orphan", DestroyNow(id));
  }
  if (adopted + lost + alive.size() > 0)
    LogInfo("sandboxes of the server before",
            {{"adopted", adopted}, {"ended_meanwhile", lost}, {"unknown", alive.size()}});
  if (!co_await operations_.Join(kLongestCleanup))
    LogWarn("cleaning up after the server before goes on in the background",
            {{"operations", operations_.size()}});
  co_return Status();
}

Task<void> Manager::Impl::EndLost(store::SandboxRow row, Ending ending) {
  // There may be traces left even if nothing lives.
  std::string id = row.id;
  co_await DestroyNow(id);
  co_await WriteEnd(std::move(row), std::move(ending));
}

}  // namespace caisson::sandbox
