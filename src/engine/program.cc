#include "engine/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxErrorText = 2048;

// Launchers ignore SIGCHLD so that dead sandboxes need no reaping; a program whose exit status
// matters needs the default for a while.
class ChildrenAreReaped {
 public:
  ChildrenAreReaped() {
    struct sigaction normal{};
    normal.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &normal, &before_);
  }
  ~ChildrenAreReaped() {
    sigaction(SIGCHLD, &before_, nullptr);
    if (before_.sa_handler != SIG_IGN) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {  // sandboxes that died meanwhile
    }
  }

 private:
  struct sigaction before_{};
};

[[noreturn]] void Exec(const std::vector<std::string>& argv, int errors) {
  signal(SIGPIPE, SIG_DFL);
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  dup2(errors, 2);
  close_range(3, ~0u, 0);
  std::vector<char*> arguments;
  for (const std::string& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv("LC_ALL", "C", 1);
  execvp(arguments[0], arguments.data());
  dprintf(2, "cannot run it: %m");
  _exit(127);
}

// Reads standard error until the program closes it; false if the deadline passed first.
bool ReadErrors(int fd, std::chrono::steady_clock::time_point deadline, std::string& text) {
  for (;;) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd item{fd, POLLIN, 0};
    if (left.count() <= 0 || poll(&item, 1, static_cast<int>(left.count())) <= 0) return false;
    char buffer[512];
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n <= 0) return true;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxErrorText) text.erase(0, text.size() - kMaxErrorText);
  }
}

}  // namespace

Status RunProgram(const std::vector<std::string>& argv, std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return FailErrno("making a pipe");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ChildrenAreReaped reaped;
  pid_t pid = fork();
  if (pid < 0) return FailErrno("starting {}", argv[0]);
  if (pid == 0) Exec(argv, theirs.get());
  theirs.Reset();
  std::string text;
  bool in_time = ReadErrors(ours.get(), std::chrono::steady_clock::now() + timeout, text);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return Fail(Code::kDeadlineExceeded, "{} took longer than {} ms", argv[0], timeout.count());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Fail(Code::kInternal, "{} failed: {}", argv[0], Trim(text));
}

}  // namespace caisson::engine
