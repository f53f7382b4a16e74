#include "envd/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstring>

#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr char kOomScore[] = "100";  // the kernel kills a child before envd

rlimit child_descriptors{};  // soft limit to give back to children; 0 = untouched

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Puts `fd` at number `target`, open after exec. The sources are all above 2 (see Fork).
bool Place(int fd, int target) { return dup2(fd, target) == target; }

void SetOomScore() {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, kOomScore, sizeof kOomScore - 1);
  close(fd);
}

// SECURITY: raw system calls. glibc's wrappers would signal the other threads of this copy of the
// process, which do not exist. Groups first, the user last: after it nothing may be changed.
bool BecomeUser(const SpawnRequest& request) {
  if (geteuid() != 0 && geteuid() == request.user.uid) return true;  // run by hand, without root
  return syscall(SYS_setgroups, request.groups.size(), request.groups.data()) == 0 &&
         syscall(SYS_setresgid, request.user.gid, request.user.gid, request.user.gid) == 0 &&
         syscall(SYS_setresuid, request.user.uid, request.user.uid, request.user.uid) == 0;
}

// Everything between fork and exec. Only async-signal-safe calls: no memory is allocated here.
// Returns only on failure, with errno set.
void RunChild(const SpawnRequest& request, char* const* argv, char* const* env) {
  setsid();
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 32; ++signal) sigaction(signal, &standard, nullptr);
  if (!Place(request.stdin_fd, 0) || !Place(request.stdout_fd, 1) || !Place(request.stderr_fd, 2))
    return;
  if (request.controlling_terminal && ioctl(0, TIOCSCTTY, 0) != 0) return;
  // SECURITY: nothing of envd's stays open in a program of the sandbox. The status pipe closes by
  // exec, too, which is the good news for the parent.
  if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) != 0) return;
  umask(022);
  setpriority(PRIO_PROCESS, 0, 0);
  SetOomScore();
  if (child_descriptors.rlim_cur != 0) setrlimit(RLIMIT_NOFILE, &child_descriptors);
  if (!BecomeUser(request)) return;
  if (chdir(request.cwd.c_str()) != 0) return;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(request.file.c_str(), argv, env);
}

// The errno that the child reports, or 0 when the pipe was closed by exec.
Task<Result<int>> ReadStatus(UniqueFd status) {
  asio::posix::stream_descriptor pipe(co_await asio::this_coro::executor, status.Release());
  int error = 0;
  auto [ec, size] = co_await pipe.async_read_some(asio::buffer(&error, sizeof error), kAwait);
  if (ec == asio::error::eof) co_return 0;
  if (ec) co_return tl::unexpected(FromEc(ec, "starting a process"));
  co_return error;
}

}  // namespace

Result<Spawned> Fork(const SpawnRequest& request) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0)
    return FailErrno("cannot start process '{}'", request.file);
  UniqueFd reader(pipe_fds[0]), writer(pipe_fds[1]);
  std::vector<char*> argv = Pointers(request.argv);
  std::vector<char*> env = Pointers(request.env);
  // No signal may reach the child while it still has envd's handlers.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pid_t pid = _Fork();
  if (pid == 0) {
    RunChild(request, argv.data(), env.data());
    int error = errno;
    (void)!write(writer.get(), &error, sizeof error);
    _exit(127);
  }
  int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    errno = error;
    return FailErrno("cannot start process '{}'", request.file);
  }
  return Spawned{pid, std::move(reader)};
}

Task<Status> WaitForExec(UniqueFd status, std::string file, std::chrono::milliseconds timeout) {
  CO_TRY_ASSIGN(int error, co_await WithDeadline(timeout, "the start of process '" + file + "'",
                                                 ReadStatus(std::move(status))));
  if (error == 0) co_return Status();
  bool exhausted = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
  co_return Fail(exhausted ? Code::kResourceExhausted : Code::kInvalidArgument,
                 "error starting process '{}': {}", file, strerror(error));
}

Result<std::string> FindProgram(const std::string& name, std::string_view path) {
  if (name.empty()) return Fail(Code::kInvalidArgument, "error starting process: no command");
  if (name.find('/') != std::string::npos) return name;
  for (std::string_view directory : Split(path, ':')) {
    std::string candidate = std::string(directory.empty() ? "." : directory) + '/' + name;
    struct stat st{};
    if (stat(candidate.c_str(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
      return candidate;
  }
  return Fail(Code::kInvalidArgument,
              "error starting process '{}': executable file not found in $PATH", name);
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  rlimit raised{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) child_descriptors = limit;
}

}  // namespace caisson::envd
