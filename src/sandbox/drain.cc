// Pausing many: before the server goes away, and those that nobody uses.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kAtOnce = 8;  // pauses under way; each writes memory to disk

}  // namespace

Task<Drained> Manager::Impl::Drain() {
  draining_ = true;
  // What is being created or resumed now is paused as soon as it is there.
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(config_.create_timeout_ms) + save_timeout_;
  Drained all;
  do {
    Drained drained = co_await PauseAll("drain", std::chrono::steady_clock::time_point::max());
    all.paused += drained.paused;
    all.failed = std::move(drained.failed);
    if (!creating_.empty()) co_await SleepFor(std::chrono::milliseconds(50));
  } while (draining_ && (!creating_.empty() || registry_.size() > all.failed.size()) &&
           std::chrono::steady_clock::now() < deadline);
  LogInfo("drained", {{"paused", all.paused}, {"failed", all.failed.size()}});
  co_return all;
}

Task<Drained> Manager::Impl::PauseAll(std::string reason,
                                      std::chrono::steady_clock::time_point deadline) {
  Drained drained;
  std::vector<std::pair<std::string, Shielded<void>>> running;
  auto records = registry_.All();
  for (size_t next = 0; next < records.size() || !running.empty();) {
    if (next < records.size() && running.size() < kAtOnce &&
        std::chrono::steady_clock::now() < deadline) {
      std::string id = records[next++]->row.id;
      running.emplace_back(id, StartShielded<void>(operations_, "pause", Pause(id, true, reason)));
      continue;
    }
    if (running.empty()) break;
    auto [id, work] = std::move(running.front());
    running.erase(running.begin());
    Status paused = co_await AwaitShielded<void>(std::move(work));
    if (paused)
      ++drained.paused;
    else if (registry_.Find(id))
      drained.failed.emplace_back(id, paused.error().message());
  }
  co_return drained;
}

Task<void> Manager::Impl::WatchIdle() {
  const std::chrono::milliseconds idle = std::chrono::seconds(config_.idle_pause_s);
  for (;;) {
    co_await SleepFor(std::clamp<std::chrono::milliseconds>(
        idle / 4, std::chrono::milliseconds(100), std::chrono::seconds(5)));
    auto now = std::chrono::steady_clock::now();
    for (const auto& record : registry_.All()) {
      // Whoever follows its life has a request or a connection open.
      if (!record->gone.empty()) record->active_at = now;
      if (now - record->active_at < idle) continue;
      record->active_at = now;  // a pause that fails is tried again after the same time
      operations_.Spawn("idle", PauseIdle(record->row.id, record->row.auto_pause_memory));
    }
  }
}

Task<void> Manager::Impl::PauseIdle(std::string id, bool memory) {
  Status paused = co_await Pause(id, memory, "idle");
  if (!paused)
    LogWarn("an idle sandbox could not be paused",
            {{"sandbox", id}, {"error", paused.error().message()}});
}

}  // namespace caisson::sandbox
