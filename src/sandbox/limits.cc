#include "sandbox/limits.h"

#include <algorithm>
#include <array>

namespace caisson::sandbox {
namespace {

using store::KeyLimits;
using store::SandboxRow;

// One of the limits, wherever it stands. `least` is what the engine needs (engine/spec.cc), so that
// clients hear it as a sentence.
struct Kind {
  const char* name;
  int64_t least;
  std::optional<int64_t> LimitOptions::* asked;
  int64_t SandboxRow::* row;
  std::optional<int64_t> KeyLimits::* own;
  int64_t SandboxSettings::* most;
};
constexpr std::array kKinds = {
    Kind{"cpuCount", 1, &LimitOptions::cpus, &SandboxRow::cpus, &KeyLimits::max_sandbox_cpus,
         &SandboxSettings::max_sandbox_cpus},
    Kind{"memoryMB", 16, &LimitOptions::memory_mb, &SandboxRow::memory_mb,
         &KeyLimits::max_sandbox_memory_mb, &SandboxSettings::max_sandbox_memory_mb},
    Kind{"diskSizeMB", 16, &LimitOptions::disk_mb, &SandboxRow::disk_mb,
         &KeyLimits::max_sandbox_disk_mb, &SandboxSettings::max_sandbox_disk_mb},
    Kind{"pids", 16, &LimitOptions::pids, &SandboxRow::pids, &KeyLimits::max_sandbox_pids,
         &SandboxSettings::max_sandbox_pids},
    Kind{"openFiles", 64, &LimitOptions::open_files, &SandboxRow::open_files,
         &KeyLimits::max_sandbox_open_files, &SandboxSettings::max_sandbox_open_files},
    Kind{"outputKBps", 1, &LimitOptions::output_kbps, &SandboxRow::output_kbps,
         &KeyLimits::max_sandbox_output_kbps, &SandboxSettings::max_sandbox_output_kbps},
};

int64_t OrDefault(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }

// The lower of two upper ends; 0 = none.
int64_t Lower(int64_t a, int64_t b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// What there is of it on this host; 0 = no upper end.
int64_t Available(const LimitBounds& bounds, const Kind& kind) {
  return kind.row == &SandboxRow::open_files ? bounds.open_files : 0;
}

// Takes over what was asked for, if it is within the range.
Status Take(const LimitBounds& bounds, const Kind& kind, const LimitOptions& asked,
            SandboxRow& row) {
  const auto& wanted = asked.*kind.asked;
  if (!wanted) return {};
  int64_t most =
      Lower((bounds.own.*kind.own).value_or(bounds.config.*kind.most), Available(bounds, kind));
  // Only where there is no upper end can output be unlimited, which is 0.
  bool unlimited = most == 0 && kind.row == &SandboxRow::output_kbps;
  int64_t least = unlimited ? 0 : kind.least;
  if (*wanted < least || (most > 0 && *wanted > most))
    return most > 0
               ? Fail(Code::kInvalidArgument, "limits.{} must be from {} to {}", kind.name, least,
                      most)
               : Fail(Code::kInvalidArgument, "limits.{} must be at least {}", kind.name, least);
  row.*kind.row = *wanted;
  return {};
}

// What a template or a setting says is no request: it is cut where the key may not have so much.
void Cut(const LimitBounds& bounds, const Kind& kind, SandboxRow& row) {
  int64_t most = Lower((bounds.own.*kind.own).value_or(0), Available(bounds, kind));
  row.*kind.row = Lower(row.*kind.row, most);
}

}  // namespace

Status ChooseLimits(const LimitBounds& bounds, const Template& from, const LimitOptions& asked,
                    SandboxRow& row) {
  const Config& config = bounds.config;
  row.cpus = OrDefault(from.cpus, config.sandbox_cpus);
  row.memory_mb = OrDefault(from.memory_mb, config.sandbox_memory_mb);
  row.disk_mb = OrDefault(from.disk_mb, config.sandbox_disk_mb);
  row.pids = OrDefault(from.pids, config.sandbox_pids);
  row.open_files = OrDefault(from.open_files, config.sandbox_open_files);
  row.output_kbps = from.output_kbps.value_or(config.sandbox_output_kbps);
  for (const Kind& kind : kKinds) {
    Cut(bounds, kind, row);
    TRY(Take(bounds, kind, asked, row));
  }
  return {};
}

Status ChangeLimits(const LimitBounds& bounds, const LimitOptions& asked, bool paused,
                    SandboxRow& row) {
  SandboxRow wanted = row;
  for (const Kind& kind : kKinds) TRY(Take(bounds, kind, asked, wanted));
  if (wanted.disk_mb < row.disk_mb)
    return Fail(Code::kInvalidArgument,
                "limits.diskSizeMB cannot become less than the {} MB that the sandbox has",
                row.disk_mb);
  if (wanted.disk_mb > row.disk_mb && !paused)
    return Fail(Code::kInvalidArgument,
                "limits.diskSizeMB cannot change while the sandbox runs; pause it first");
  int64_t open_files = OrDefault(row.open_files, bounds.config.sandbox_open_files);
  if (wanted.open_files > open_files)
    return Fail(Code::kInvalidArgument,
                "limits.openFiles can only be lowered once the sandbox exists: it is {}, and the "
                "kernel lets no process have more again",
                open_files);
  row = std::move(wanted);
  return {};
}

bool HaveSameLimits(const SandboxRow& a, const SandboxRow& b) {
  return std::ranges::all_of(kKinds, [&](const Kind& kind) { return a.*kind.row == b.*kind.row; });
}

engine::Limits LimitsOf(const SandboxRow& row, const Config& config) {
  return {.cpus = row.cpus,
          .memory_bytes = row.memory_mb << 20,
          .disk_bytes = row.disk_mb << 20,
          .pids = OrDefault(row.pids, config.sandbox_pids),
          .open_files = OrDefault(row.open_files, config.sandbox_open_files)};
}

}  // namespace caisson::sandbox
