#include "engine/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/slot.h"

namespace caisson::engine {
namespace {

Result<UniqueFd> MapAndOpen(pid_t pid, uid_t uid_base) {
  std::string proc = fmt::format("/proc/{}/", pid);
  TRY(WriteKernelFile(proc + "uid_map", IdMap(uid_base)));
  TRY(WriteKernelFile(proc + "gid_map", IdMap(uid_base)));
  UniqueFd fd(open((proc + "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("opening a user namespace");
  return fd;
}

}  // namespace

std::string IdMap(uid_t uid_base) { return fmt::format("0 {} {}\n", uid_base, kIdsPerSandbox); }

Result<UniqueFd> MakeUserNamespace(uid_t uid_base) {
  // It lives only until its namespace is held by a descriptor.
  auto pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  if (pid < 0) return FailErrno("creating a user namespace");
  if (pid == 0)
    for (;;) pause();
  auto fd = MapAndOpen(pid, uid_base);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return fd;
}

}  // namespace caisson::engine
