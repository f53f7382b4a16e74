// Is envd still there? Asked when the gateway could not reach it: code inside the sandbox can stop,
// starve or break envd, and its owner should read so in the timeline.
#include "base/log.h"
#include "sandbox/manager_impl.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::seconds kReportInterval{60};  // at most one event per sandbox in this time

}  // namespace

void Manager::Impl::ReportUnresponsive(const std::string& id, std::string reason) {
  auto record = registry_.Find(id);
  auto now = std::chrono::steady_clock::now();
  if (!record || record->probing) return;
  if (record->unresponsive_at && now - *record->unresponsive_at < kReportInterval) return;
  record->probing = true;
  background_.Spawn("probe", Probe(record, std::move(reason)));
}

void Manager::Impl::Show(std::shared_ptr<Record> record) {
  const std::string id = record->row.id;
  registry_.Add(std::move(record));
  if (auto held = held_.find(id); held != held_.end()) OnHeld(id, true, held->second);
}

bool Manager::Impl::StandsStill(const std::string& id) const {
  return held_.contains(id) || !turns_.Doing(id).empty();
}

void Manager::Impl::OnHeld(const std::string& id, bool held, int64_t free_mb) {
  if (held)
    held_[id] = free_mb;
  else
    held_.erase(id);
  auto record = registry_.Find(id);
  if (!record) return;  // Show() tells
  record->route.held = held;
  StringMap fields{{"free_mb", std::to_string(free_mb)}};
  if (held) fields["reason"] = "host_disk_full";
  background_.Spawn(
      "held",
      WriteEvent(held ? MakeEvent(id, "held",
                                  "The sandbox stands still: the disk of its server is nearly "
                                  "full, and its own grew fastest",
                                  std::move(fields), "error")
                      : MakeEvent(id, "let_go", "The sandbox goes on: there is room again",
                                  std::move(fields))));
}

Task<void> Manager::Impl::Probe(std::shared_ptr<Record> record, std::string reason) {
  std::chrono::milliseconds timeout(config_.envd_timeout_ms);
  Status healthy = co_await WithDeadline(timeout, "asking envd", CheckHealth(record));
  record->probing = false;
  if (healthy || !record->running) co_return;
  record->unresponsive_at = std::chrono::steady_clock::now();
  const std::string& id = record->row.id;
  LogWarn("a sandbox's envd does not answer",
          {{"sandbox", id}, {"reason", reason}, {"probe", healthy.error().message()}});
  Status stored = co_await store_.AppendEvent(
      MakeEvent(id, "unresponsive", fmt::format("The sandbox is unresponsive: {}", reason),
                {{"reason", reason}, {"probe", healthy.error().message()}}, "error"));
  if (!stored)
    LogError("an event could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
}

Task<Status> Manager::Impl::CheckHealth(std::shared_ptr<Record> record) {
  CO_TRY_ASSIGN(UniqueFd raw, co_await sockets_.Take(record));
  co_return co_await envd_.CheckHealth(std::move(raw));
}

}  // namespace caisson::sandbox
