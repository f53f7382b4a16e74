#include "engine/criu_subject.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "engine/network.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;
constexpr uint16_t kPort = 7000;
constexpr unsigned long kKernelFs = MS_NOSUID | MS_NODEV | MS_NOEXEC;

Status EnterRoot(const std::string& root) {
  // A mount of an owner outside cannot become a root; a copy of it can.
  if (mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr)) return FailErrno("binding");
  if (chdir(root.c_str())) return FailErrno("entering the root");
  if (mount("proc", "proc", "proc", kKernelFs, nullptr)) return FailErrno("mounting proc");
  if (setresgid(0, 0, 0) || setresuid(0, 0, 0)) return FailErrno("taking user ids");
  if (mount("devpts", "pts", "devpts", MS_NOSUID | MS_NOEXEC,
            "newinstance,ptmxmode=0666,mode=0620,gid=5"))
    return FailErrno("mounting devpts");
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
    return FailErrno("changing the root");
  return {};
}

// In the new process, which `channel` tells when its user ids are there. Returns only to fail.
Status Become(const std::string& root, const std::vector<std::string>& words, int channel) {
  char byte;
  if (read(channel, &byte, 1) != 1) return FailErrno("waiting for user ids");
  TRY(EnterRoot(root));
  TRY(ConfigureLoopback());
  setsid();
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) ||
      listen(listener, 16))
    return FailErrno("listening");
  // Only that one is kept; `channel` closes when the program starts.
  if (dup2(listener, 0) < 0) return FailErrno("placing a socket");
  close_range(1, ~0u, CLOSE_RANGE_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char* environment[] = {nullptr};
  execve(arguments[0], arguments.data(), environment);
  return FailErrno("starting a program");
}

}  // namespace

Status MakeSubjectRoot(const std::string& path, uid_t first_id) {
  // CRIU makes a folder of its own in the root for a moment.
  if (chown(path.c_str(), first_id, first_id)) return FailErrno("giving away a folder");
  for (const char* name : {"proc", "pts"})
    if (mkdir(fmt::format("{}/{}", path, name).c_str(), 0755)) return FailErrno("making a folder");
  if (mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr)) return FailErrno("binding");
  return {};
}

Result<Subject> Subject::Start(const std::string& root, uid_t first_id,
                               const std::vector<std::string>& arguments) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return FailErrno("making a socket");
  UniqueFd ours(pair[0]), theirs(pair[1]);
  clone_args args{};
  args.flags = kNamespaces;
  args.exit_signal = SIGCHLD;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid < 0) return FailErrno("making namespaces");
  if (pid == 0) {
    std::string text = Become(root, arguments, theirs.get()).error().message();
    (void)!send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL);
    _exit(1);
  }
  Subject subject(pid);
  theirs.Reset();
  for (const char* map : {"uid_map", "gid_map"})
    TRY(WriteKernelFile(fmt::format("/proc/{}/{}", pid, map),
                        fmt::format("0 {} {}", first_id, kSubjectIds)));
  (void)!send(ours.get(), "G", 1, MSG_NOSIGNAL);
  char text[512];
  ssize_t n = read(ours.get(), text, sizeof text);
  if (n != 0)
    return Fail(Code::kInternal, "a process could not be made: {}",
                std::string_view(text, static_cast<size_t>(std::max<ssize_t>(n, 0))));
  return subject;
}

Subject::~Subject() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Status SetUpSubjectNetwork(int pid) {
  return TryInChild([&]() -> Status {
    UniqueFd network(open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!network || setns(network.get(), CLONE_NEWNET)) return FailErrno("entering a network");
    return ConfigureLoopback();
  });
}

}  // namespace caisson::engine
