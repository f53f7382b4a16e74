#include "engine/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace caisson::engine {
namespace {

// Children of those that have the limit have it too, so each round leaves fewer.
constexpr int kRounds = 100;

// True if it had more than that.
Result<bool> Lower(pid_t pid, rlim_t limit) {
  rlimit files;
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &files)) {
    if (errno == ESRCH) return false;  // it has ended
    return FailErrno("reading the limit of open files of process {}", pid);
  }
  if (files.rlim_max <= limit) return false;
  files.rlim_max = limit;
  files.rlim_cur = std::min(files.rlim_cur, limit);
  if (prlimit(pid, RLIMIT_NOFILE, &files, nullptr) && errno != ESRCH)
    return FailErrno("limiting open files of process {}", pid);
  return true;
}

}  // namespace

int64_t HostOpenFiles() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files)) return 0;
  return static_cast<int64_t>(
      std::min<rlim_t>(files.rlim_max, std::numeric_limits<int64_t>::max()));
}

Status LimitOpenFiles(const Cgroup& cgroup, int64_t limit) {
  for (int round = 0; round < kRounds; ++round) {
    TRY_ASSIGN(auto processes, cgroup.Processes());
    bool lowered = false;
    for (pid_t pid : processes) {
      TRY_ASSIGN(bool changed, Lower(pid, static_cast<rlim_t>(limit)));
      lowered = lowered || changed;
    }
    if (!lowered) return {};
  }
  return Fail(Code::kResourceExhausted, "the processes of the sandbox multiply too fast");
}

}  // namespace caisson::engine
