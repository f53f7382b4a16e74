// What the engine's long-lived processes have in common: how they are forked and named, and what
// they leave behind of the process they come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

struct Forked {
  int pid = 0;
  UniqueFd process;  // pidfd
};

// Forks, and runs `main` in the child with no descriptors but 0-2 and `keep`; its result is the
// exit code. Only from a single-threaded process.
Result<Forked> ForkProcess(const std::vector<int>& keep, const std::function<int()>& main);

// What ps shows, e.g. "caisson: engine".
void SetProcessTitle(std::string_view title);
// Signals of a terminal or a service manager mean the server, which tells us by closing its socket;
// dead children need no reaping.
void IgnoreSignals();
// As many descriptors as this process may have.
void RaiseOpenFileLimit();
// The host's own limit for all processes together: files are counted against the memory of whoever
// opens them, and without a limit of their own nobody can take those of all.
void LiftFileLimitOfHost();
// If this process is guarded from the kernel's out-of-memory killer, sandboxes shall not inherit
// it.
void LeaveOomProtection();

}  // namespace caisson::engine
