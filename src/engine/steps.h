// The named steps by which a sandbox is built: how long each took, and for tests, which shall fail.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

// The launcher's in their order, then those of the sandbox's first process in theirs. kEnter and
// kKernel run at the same time as kIdentity and kVeth, kSettle as kRoot.
enum class Step {
  kSlot,      // a number: uid range, addresses
  kRecord,    // sandboxes/<id>.building
  kCgroup,    // cgroups with their limits
  kDisk,      // image, loop device
  kClone,     // the process in its namespaces
  kIdentity,  // uid and gid maps, contents of the record
  kVeth,      // network interface
  kRoot,      // file system of the disk, overlay of template and disk
  kRelease,   // root and boot data handed over
  kBoot,      // what the child still has to do; envd runs and said so
  kEnter,     // child: into its cgroups
  kKernel,    // child: proc, sys and their covers
  kSettle,    // child: addresses, host name, limits, bounding set
  kMounts,    // child: root, dev, envd
  kPivot,     // child: the host's tree is gone
  kConfine,   // child: seccomp
  kRestore,   // instead of those from kClone on: CRIU made the processes
  kFreeze,    // saving: everything stands still
  kSync,      // saving: its disk is written out
  kDump,      // saving: CRIU wrote the memory
  kCommit,    // saving: the saved state is complete
  kCount,
};
inline constexpr size_t kStepCount = static_cast<size_t>(Step::kCount);

std::string_view StepName(Step step);

// One run through the steps. Shared by launcher and child through memory that both see.
class Steps {
 public:
  // `fail_at`: Config::engine_fail_at, "<step>" fails instead of doing it, "after:<step>" once it
  // is done.
  explicit Steps(std::string fail_at);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Forgets the times of the last sandbox.
  void Reset();

  template <class Fn>
  Status Run(Step step, Fn&& fn) {
    TRY(FailIf(step, ""));
    auto begin = std::chrono::steady_clock::now();
    TRY(fn());
    Took(step, std::chrono::steady_clock::now() - begin);
    return FailIf(step, "after:");
  }

  std::chrono::nanoseconds took(Step step) const;
  // "slot=0.01 record=0.03 ...", in milliseconds.
  std::string Summary() const;

 private:
  Status FailIf(Step step, std::string_view when) const;
  void Took(Step step, std::chrono::nanoseconds duration);

  using Times = std::array<int64_t, kStepCount>;
  std::string fail_at_;
  Times* times_;  // shared memory
};

}  // namespace caisson::engine
