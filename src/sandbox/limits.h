// How much of the machine one sandbox may use: what was asked for, else its template's, else the
// server's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/config.h"
#include "engine/engine.h"
#include "sandbox/template.h"
#include "store/store.h"

namespace caisson::sandbox {

// What a request asks for; what it leaves out stays as it is.
struct LimitOptions {
  std::optional<int64_t> cpus;
  std::optional<int64_t> memory_mb;
  std::optional<int64_t> disk_mb;
  std::optional<int64_t> pids;
  std::optional<int64_t> open_files;   // per process
  std::optional<int64_t> output_kbps;  // of one command

  bool any() const { return cpus || memory_mb || disk_mb || pids || open_files || output_kbps; }
};

// Sets the limits of a new row. kInvalidArgument with the range, if more or less is asked for than
// there may be.
Status ChooseLimits(const Config& config, const Template& from, const LimitOptions& asked,
                    store::SandboxRow& row);
// Changes those of a sandbox that runs. kInvalidArgument also for what cannot be changed then:
// disk, open files and output are settled at the start.
Status ChangeLimits(const Config& config, const LimitOptions& asked, store::SandboxRow& row);

engine::Limits LimitsOf(const store::SandboxRow& row, const Config& config);

}  // namespace caisson::sandbox
