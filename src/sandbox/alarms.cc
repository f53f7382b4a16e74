#include "sandbox/alarms.h"

#include "sandbox/manager_impl.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::seconds kQuiet{60};
constexpr int64_t kFullPct = 95;
constexpr int64_t kRoomAgainPct = 90;  // below, so that a disk at the edge is not told of for ever

}  // namespace

int64_t Alarms::Counter::News(int64_t count, Clock::time_point now) {
  told = std::min(told, count);  // a sandbox that was paused counts from zero again
  if (count == told || (at && now - *at < kQuiet)) return 0;
  at = now;
  return count - std::exchange(told, count);
}

std::vector<store::SandboxEvent> Alarms::Look(const std::string& id, const engine::Usage& usage,
                                              Clock::time_point now) {
  std::vector<store::SandboxEvent> events;
  int64_t used_pct =
      usage.disk_total_bytes > 0 ? usage.disk_used_bytes * 100 / usage.disk_total_bytes : 0;
  if (!std::exchange(known_, true)) {
    oom_kills_.told = usage.oom_kills;
    pids_refused_.told = usage.pids_refused;
    disk_full_ = used_pct >= kFullPct;
    return events;
  }
  if (int64_t kills = oom_kills_.News(usage.oom_kills, now))
    events.push_back(MakeEvent(
        id, "out_of_memory",
        fmt::format("The sandbox ran out of its {} MB of memory: the kernel killed {} of its "
                    "processes",
                    usage.memory_limit_bytes >> 20, kills),
        {{"reason", "out_of_memory"},
         {"kills", std::to_string(kills)},
         {"memory_limit_bytes", std::to_string(usage.memory_limit_bytes)}},
        "error"));
  if (int64_t refused = pids_refused_.News(usage.pids_refused, now))
    events.push_back(MakeEvent(
        id, "too_many_processes",
        fmt::format("The sandbox has as many processes as it may: {} more were refused", refused),
        {{"reason", "too_many_processes"},
         {"refused", std::to_string(refused)},
         {"pids", std::to_string(usage.pids)}},
        "warn"));
  if (used_pct < kRoomAgainPct) disk_full_ = false;
  if (used_pct >= kFullPct && !std::exchange(disk_full_, true))
    events.push_back(MakeEvent(id, "disk_full",
                               fmt::format("The sandbox's disk of {} MB is {} % full",
                                           usage.disk_total_bytes >> 20, used_pct),
                               {{"reason", "disk_full"},
                                {"used_bytes", std::to_string(usage.disk_used_bytes)},
                                {"total_bytes", std::to_string(usage.disk_total_bytes)}},
                               "warn"));
  return events;
}

}  // namespace caisson::sandbox
