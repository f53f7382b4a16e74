#include "engine/process.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

void CloseAllExcept(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned next = 3;
  for (int fd : keep) {
    auto number = static_cast<unsigned>(fd);
    if (number > next) close_range(next, number - 1, 0);
    next = std::max(next, number + 1);
  }
  close_range(next, ~0u, 0);
}

}  // namespace

Result<Forked> ForkProcess(const std::vector<int>& keep, const std::function<int()>& main) {
  int process = -1;
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(&process);
  arguments.exit_signal = SIGCHLD;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (pid < 0) return FailErrno("starting a process");
  if (pid == 0) {
    CloseAllExcept(keep);
    // Without running destructors: what this process inherited in memory belongs to its parent.
    _exit(main());
  }
  return Forked{pid, UniqueFd(process)};
}

void SetProcessTitle(std::string_view title) {
  prctl(PR_SET_NAME, std::string(title).c_str());
  // ps reads the memory where the kernel put the arguments; fields 48 and 49 of stat tell where.
  auto stat = ReadFile("/proc/self/stat", 8192);
  if (!stat) return;
  auto fields = Split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
  if (fields.size() < 47) return;
  auto begin = ParseInt<uintptr_t>(fields[45]), end = ParseInt<uintptr_t>(fields[46]);
  if (!begin || !end || *begin == 0 || *end <= *begin) return;
  size_t room = *end - *begin;
  auto* memory = reinterpret_cast<char*>(*begin);
  std::memset(memory, 0, room);
  std::memcpy(memory, title.data(), std::min(title.size(), room - 1));
}

void IgnoreSignals() {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) signal(number, SIG_IGN);
}

void RaiseOpenFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files)) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

void LiftFileLimitOfHost() {
  constexpr const char* kPath = "/proc/sys/fs/file-max";
  constexpr int64_t kEnough = int64_t{1} << 32;
  auto text = ReadFile(kPath, 64);
  auto limit = text ? ParseInt<int64_t>(Trim(*text)) : std::nullopt;
  if (!limit || *limit >= kEnough) return;
  if (Status lifted = WriteKernelFile(kPath, std::to_string(INT64_MAX)); !lifted)
    LogWarn("one sandbox may take all files that this host can have open",
            {{"limit", *limit}, {"error", lifted.error().message()}});
  else
    LogInfo("lifted the limit of files that this host can have open (fs.file-max)",
            {{"before", *limit}});
}

void LeaveOomProtection() {
  constexpr const char* kPath = "/proc/self/oom_score_adj";
  auto text = ReadFile(kPath, 64);
  if (!text || !text->starts_with('-')) return;
  (void)WriteKernelFile(kPath, "0");
}

}  // namespace caisson::engine
