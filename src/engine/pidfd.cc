#include "engine/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace caisson::engine {
namespace {

// From linux/pidfd.h of 6.15; the headers of the build machine may be older than its kernel.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup_id = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
constexpr uint64_t kInfoExit = 1 << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
static_assert(sizeof(PidfdInfo) == 64);

}  // namespace

Result<UniqueFd> OpenProcess(int pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd) return fd;
  if (errno == ESRCH) return Fail(Code::kNotFound, "there is no process {}", pid);
  return FailErrno("opening process {}", pid);
}

void SendSignal(int pidfd, int signal) {
  syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

bool WaitForExit(int pidfd, std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd item{pidfd, POLLIN, 0};
    int n = poll(&item, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (n > 0) return true;
    if (n == 0) return false;
  }
}

std::optional<int> ExitStatus(int pidfd) {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (ioctl(pidfd, kGetInfo, &info) || !(info.mask & kInfoExit)) return std::nullopt;
  return info.exit_code;
}

std::string DescribeExit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace caisson::engine
