#include "sandbox/limits.h"

namespace caisson::sandbox {
namespace {

// What the engine needs at least (engine/spec.cc), so that clients hear it as a sentence.
constexpr int64_t kMinMegabytes = 16;
constexpr int64_t kMinPids = 16;
constexpr int64_t kMinOpenFiles = 64;

int64_t OrDefault(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }

// Takes over what was asked for, if it is within the range; `max` 0 = no upper end.
Status Take(const std::optional<int64_t>& asked, const char* name, int64_t min, int64_t max,
            int64_t& out) {
  if (!asked) return {};
  if (*asked < min || (max > 0 && *asked > max))
    return max > 0 ? Fail(Code::kInvalidArgument, "limits.{} must be from {} to {}", name, min, max)
                   : Fail(Code::kInvalidArgument, "limits.{} must be at least {}", name, min);
  out = *asked;
  return {};
}

Status TakeCommon(const Config& config, const LimitOptions& asked, store::SandboxRow& row) {
  TRY(Take(asked.cpus, "cpuCount", 1, config.max_sandbox_cpus, row.cpus));
  TRY(Take(asked.memory_mb, "memoryMB", kMinMegabytes, config.max_sandbox_memory_mb,
           row.memory_mb));
  TRY(Take(asked.disk_mb, "diskSizeMB", kMinMegabytes, config.max_sandbox_disk_mb, row.disk_mb));
  return Take(asked.pids, "pids", kMinPids, config.max_sandbox_pids, row.pids);
}

}  // namespace

Status ChooseLimits(const Config& config, const Template& from, const LimitOptions& asked,
                    store::SandboxRow& row) {
  row.cpus = OrDefault(from.cpus, config.sandbox_cpus);
  row.memory_mb = OrDefault(from.memory_mb, config.sandbox_memory_mb);
  row.disk_mb = OrDefault(from.disk_mb, config.sandbox_disk_mb);
  row.pids = OrDefault(from.pids, config.sandbox_pids);
  row.open_files = OrDefault(from.open_files, config.sandbox_open_files);
  row.output_kbps = config.sandbox_output_kbps;
  TRY(TakeCommon(config, asked, row));
  // These two may only be lowered: what is set is also the most there is.
  TRY(Take(asked.open_files, "openFiles", kMinOpenFiles, row.open_files, row.open_files));
  return Take(asked.output_kbps, "outputKBps", 1, row.output_kbps, row.output_kbps);
}

Status ChangeLimits(const Config& config, const LimitOptions& asked, store::SandboxRow& row) {
  if (asked.disk_mb || asked.open_files || asked.output_kbps)
    return Fail(Code::kInvalidArgument,
                "limits.diskSizeMB, limits.openFiles and limits.outputKBps are settled when a "
                "sandbox is created and cannot be changed later");
  return TakeCommon(config, asked, row);
}

engine::Limits LimitsOf(const store::SandboxRow& row, const Config& config) {
  return {.cpus = row.cpus,
          .memory_bytes = row.memory_mb << 20,
          .disk_bytes = row.disk_mb << 20,
          .pids = OrDefault(row.pids, config.sandbox_pids),
          .open_files = OrDefault(row.open_files, config.sandbox_open_files)};
}

}  // namespace caisson::sandbox
