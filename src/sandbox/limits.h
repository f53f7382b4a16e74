// How much of the machine one sandbox may use: what was asked for, else its template's, else the
// server's; never more than its key may have.
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

// The most there may be: the key's own limits, else the server's settings.
struct LimitBounds {
  const Config& config;
  const store::KeyLimits& own;
  int64_t open_files = 0;  // and no more than so many, because there are no more; 0 = unknown
};

// Sets the limits of a new row. kInvalidArgument with the range, if more or less is asked for than
// there may be; what nobody asked for is cut to what the key may have.
Status ChooseLimits(const LimitBounds& bounds, const Template& from, const LimitOptions& asked,
                    store::SandboxRow& row);
// Changes those of a sandbox that runs or is paused. kInvalidArgument also for what cannot be
// changed then: open files only become fewer, a disk only grows, and only while it is paused.
Status ChangeLimits(const LimitBounds& bounds, const LimitOptions& asked, bool paused,
                    store::SandboxRow& row);
bool HaveSameLimits(const store::SandboxRow& a, const store::SandboxRow& b);

engine::Limits LimitsOf(const store::SandboxRow& row, const Config& config);

}  // namespace caisson::sandbox
