#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "engine/criu.h"
#include "engine/network.h"
#include "engine/pidfd.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

// No mount namespace: what this process has mapped must be found again under the same path.
constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;

// The process that is saved: listens, says so, and waits.
[[noreturn]] void Listen(int ready) {
  setsid();
  int null = open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(null, fd);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || listen(listener, 1) != 0 || write(ready, "R", 1) != 1) _exit(1);
  dup2(listener, 3);
  close_range(4, ~0u, 0);
  while (true) pause();
}

class Subject {
 public:
  static Result<Subject> Start() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return FailErrno("making a pipe");
    UniqueFd read_end(fds[0]), write_end(fds[1]);
    clone_args args{};
    args.flags = kNamespaces;
    args.exit_signal = SIGCHLD;
    auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
    if (pid < 0) return FailErrno("making namespaces");
    if (pid == 0) Listen(write_end.get());
    Subject subject(pid);
    for (const char* map : {"uid_map", "gid_map"})
      TRY(WriteKernelFile(fmt::format("/proc/{}/{}", pid, map), "0 0 65536"));
    write_end.Reset();
    char byte;
    if (read(read_end.get(), &byte, 1) != 1)
      return Fail(Code::kInternal, "a process did not start");
    return subject;
  }
  explicit Subject(pid_t pid) : pid_(pid) {}
  Subject(Subject&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Subject& operator=(Subject&&) = delete;
  ~Subject() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

Status SaveAndContinue(const Criu& criu, int images, Deadline deadline) {
  {
    TRY_ASSIGN(Subject subject, Subject::Start());
    DumpPlan plan;
    plan.pid = subject.pid();
    plan.images = images;
    TRY(criu.Dump(plan, deadline));
  }
  RestorePlan plan;
  plan.images = images;
  plan.root = "/";
  TRY_ASSIGN(int pid, criu.Restore(plan, deadline));
  Subject subject(pid);
  if (kill(pid, 0) != 0) return Fail(Code::kInternal, "a continued process ended at once");
  return {};
}

}  // namespace

Status TryCriu(const Criu& criu, Deadline deadline) {
  std::string folder = (std::filesystem::temp_directory_path() / "caisson-criu-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return FailErrno("making a folder for a trial of CRIU");
  UniqueFd images(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  Status tried = TryInChild([&] { return SaveAndContinue(criu, images.get(), deadline); }, left);
  TRY(RemoveTree(folder));
  return tried;
}

}  // namespace caisson::engine
