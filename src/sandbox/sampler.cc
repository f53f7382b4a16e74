#include "sandbox/sampler.h"

#include "base/log.h"

namespace caisson::sandbox {
namespace {

// Small enough that other calls to the engine do not wait behind a batch.
constexpr size_t kBatch = 64;

}  // namespace

double CpuUsedPct(int64_t cpu_ns_before, Time before, int64_t cpu_ns_after, Time after,
                  int64_t cpus) {
  double available = static_cast<double>((after - before).count()) * static_cast<double>(cpus);
  if (available <= 0) return 0;
  double used = static_cast<double>(cpu_ns_after - cpu_ns_before);
  return std::clamp(used / available * 100, 0.0, 100.0);
}

Sampler::Sampler(engine::Engine& engine, Registry& registry, const Config& config,
                 AlarmHandler on_alarm)
    : engine_(engine),
      registry_(registry),
      interval_(config.metrics_interval_ms),
      history_(static_cast<size_t>(std::max<int64_t>(config.metrics_history, 1))),
      long_interval_(config.metrics_long_interval_s),
      long_history_(static_cast<size_t>(config.metrics_long_history)),
      on_alarm_(std::move(on_alarm)) {}

Task<void> Sampler::Loop() {
  for (;;) {
    co_await SleepFor(interval_);
    std::vector<std::string> batch;
    for (const auto& record : registry_.All()) {
      batch.push_back(record->row.id);
      if (batch.size() < kBatch) continue;
      Status measured = co_await Measure(std::exchange(batch, {}));
      if (!measured) LogWarn("measuring failed", {{"error", measured.error().message()}});
    }
    if (batch.empty()) continue;
    Status measured = co_await Measure(std::move(batch));
    if (!measured) LogWarn("measuring failed", {{"error", measured.error().message()}});
  }
}

Task<Status> Sampler::Measure(std::vector<std::string> ids) {
  CO_TRY_ASSIGN(auto usages, co_await engine_.Measure(std::move(ids)));
  for (const auto& [id, usage] : usages)
    if (auto record = registry_.Find(id)) Append(*record, usage);
  co_return Status();
}

void Sampler::Append(Record& record, const engine::Usage& usage) const {
  Sample sample{.usage = usage};
  if (record.history.empty()) {
    sample.cpu_used_pct =
        CpuUsedPct(0, record.row.started_at, usage.cpu_ns, usage.at, record.row.cpus);
  } else {
    const engine::Usage& before = record.history.back().usage;
    if (usage.at <= before.at) return;
    sample.cpu_used_pct =
        CpuUsedPct(before.cpu_ns, before.at, usage.cpu_ns, usage.at, record.row.cpus);
  }
  record.history.push_back(sample);
  while (record.history.size() > history_) record.history.pop_front();
  if (long_interval_.count() > 0) record.means.Add(sample, long_interval_, long_history_);
  auto now = std::chrono::steady_clock::now();
  for (store::SandboxEvent& event : record.alarms.Look(record.row.id, usage, now))
    on_alarm_(std::move(event));
}

}  // namespace caisson::sandbox
