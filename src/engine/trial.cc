#include "engine/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace caisson::engine {

Status TryInChild(const std::function<Status()>& body, std::chrono::milliseconds timeout) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return FailErrno("cannot make a pipe");
  UniqueFd read_end(fds[0]), write_end(fds[1]);
  pid_t pid = fork();
  if (pid < 0) return FailErrno("cannot start a process");
  if (pid == 0) {
    read_end.Reset();
    Status status = body();
    if (status) _exit(0);
    // Shorter than a pipe's buffer, so it never blocks.
    std::string_view text = std::string_view(status.error().message()).substr(0, 4000);
    _exit(write(write_end.get(), text.data(), text.size()) < 0 ? 2 : 1);
  }
  write_end.Reset();
  // The child's end of the pipe closes when it exits; its own children must not keep it open, and
  // do not: it is close-on-exec.
  pollfd p{.fd = read_end.get(), .events = POLLIN};
  bool answered = poll(&p, 1, static_cast<int>(timeout.count())) > 0;
  if (!answered) kill(pid, SIGKILL);
  char text[4096];
  ssize_t n = answered ? read(read_end.get(), text, sizeof text) : 0;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!answered) return Fail(Code::kDeadlineExceeded, "it took too long");
  if (n > 0)
    return Fail(Code::kFailedPrecondition, "{}", std::string_view(text, static_cast<size_t>(n)));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Fail(Code::kInternal, "the trial ended unexpectedly");
}

}  // namespace caisson::engine
