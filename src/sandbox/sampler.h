// Measures every running sandbox now and then and keeps the last samples of each, and means of many
// more.
#pragma once

#include <memory>
#include <vector>

#include "base/async.h"
#include "engine/client.h"
#include "sandbox/registry.h"

namespace caisson::sandbox {

class Sampler {
 public:
  // Told when a sandbox ran out of something (alarms.h).
  using AlarmHandler = std::function<void(store::SandboxEvent)>;

  // The metrics_ settings of `config` say how often, and how much is kept.
  Sampler(engine::Engine& engine, Registry& registry, const Config& config, AlarmHandler on_alarm);

  // Runs until canceled.
  Task<void> Loop();
  // Takes one sample of each of these now.
  Task<Status> Measure(std::vector<std::string> ids);

 private:
  void Append(Record& record, const engine::Usage& usage) const;

  engine::Engine& engine_;
  Registry& registry_;
  const std::chrono::milliseconds interval_;
  const size_t history_;
  const std::chrono::seconds long_interval_;
  const size_t long_history_;
  const AlarmHandler on_alarm_;
};

// Share of all the sandbox's CPUs in use between two moments: 0..100.
double CpuUsedPct(int64_t cpu_ns_before, Time before, int64_t cpu_ns_after, Time after,
                  int64_t cpus);

}  // namespace caisson::sandbox
