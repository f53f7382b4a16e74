#include "engine/criu_process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "base/file.h"
#include "base/text.h"
#include "engine/pidfd.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSocketFd = 3;
constexpr int kLockFd = 4;
constexpr size_t kMaxAnswer = 64 << 10;
constexpr milliseconds kKillTime{2000};

// CRIU asks the kernel dozens of questions at each start, unless it finds its notes of the last
// time; it trusts these only on a tmpfs, which /run is not everywhere.
Status CoverRun(std::string_view kernel_facts) {
  if (unshare(CLONE_NEWNS)) return FailErrno("taking a mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))
    return FailErrno("separating mounts");
  if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=1m"))
    return FailErrno("mounting a tmpfs on /run");
  if (kernel_facts.empty()) return {};
  UniqueFd file(open("/run/criu.kdat", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || write(file.get(), kernel_facts.data(), kernel_facts.size()) < 0)
    return FailErrno("writing what CRIU knows of the kernel");
  return {};
}

// Descriptors 0-2 lead nowhere, 3 is the socket, 4 may be a lock, and there is no other.
Status ArrangeDescriptors(int& socket, UniqueFd lock) {
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return FailErrno("opening /dev/null");
  for (int fd : {0, 1, 2})
    if (dup2(null.get(), fd) < 0) return FailErrno("opening standard descriptors");
  null.Reset();
  if (socket != kSocketFd && dup2(socket, kSocketFd) < 0) return FailErrno("placing a socket");
  socket = kSocketFd;
  fcntl(socket, F_SETFD, 0);
  bool lock_placed = static_cast<bool>(lock);
  if (lock && dup2(lock.get(), kLockFd) < 0) return FailErrno("placing a lock");
  lock.Release();  // closed by what follows
  if (close_range(static_cast<unsigned>(lock_placed ? kLockFd + 1 : kSocketFd + 1), ~0u, 0))
    return FailErrno("closing inherited descriptors");
  return {};
}

Status BecomeCriu(const CriuStart& start, int& socket, UniqueFd lock) {
  if (lock)
    setsid();
  else
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (start.enter && *start.enter) TRY((*start.enter)());
  if (start.cover_run) TRY(CoverRun(start.kernel_facts));
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  TRY(ArrangeDescriptors(socket, std::move(lock)));

  std::vector<char*> arguments;
  for (const std::string& word : *start.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  std::string fd = std::to_string(kSocketFd);
  arguments.insert(arguments.end(), {const_cast<char*>("swrk"), fd.data(), nullptr});
  char* environment[] = {const_cast<char*>("PATH=/usr/sbin:/usr/bin:/sbin:/bin"), nullptr};
  execve(arguments[0], arguments.data(), environment);
  return FailErrno("starting CRIU");
}

// Children of a stopped process.
std::vector<int> ChildrenOf(int pid) {
  std::vector<int> children;
  auto text = ReadFile(fmt::format("/proc/{}/task/{}/children", pid, pid));
  if (!text) return children;
  for (std::string_view word : Split(*text, ' '))
    if (auto child = ParseInt<int>(Trim(word))) children.push_back(*child);
  return children;
}

milliseconds Left(Deadline deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
}

Result<std::string> ParseVersion(std::string_view message) {
  uint64_t parts[3] = {};
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) break;
    if (field->number == 1) parts[0] = field->value;
    if (field->number == 2) parts[1] = field->value;
    if (field->number == 4) parts[2] = field->value;
  }
  return fmt::format("{}.{}{}", parts[0], parts[1],
                     parts[2] ? fmt::format(".{}", parts[2]) : std::string());
}

Status ParseNotification(std::string_view message, CriuAnswer& answer) {
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return {};
    if (field->number == 1) answer.script = field->bytes;
    if (field->number == 2) answer.pid = static_cast<int>(field->value);
  }
}

Status ParseRestored(std::string_view message, CriuAnswer& answer) {
  WireReader reader(message);
  TRY_ASSIGN(auto field, reader.Next());
  if (field && field->number == 1) answer.pid = static_cast<int>(field->value);
  return {};
}

Result<CriuAnswer> ParseAnswer(std::string_view message) {
  CriuAnswer answer;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return answer;
    switch (field->number) {
      case 1:
        answer.verb = static_cast<CriuVerb>(field->value);
        break;
      case 2:
        answer.success = field->value != 0;
        break;
      case 4:
        TRY(ParseRestored(field->bytes, answer));
        break;
      case 5:
        TRY(ParseNotification(field->bytes, answer));
        break;
      case 9:
        answer.error = field->bytes;
        break;
      case 10: {
        TRY_ASSIGN(answer.version, ParseVersion(field->bytes));
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace

Result<CriuProcess> CriuProcess::Start(const CriuStart& start) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return FailErrno("making a socket");
  UniqueFd ours(pair[0]), theirs(pair[1]), lock;
  // Before it exists: there is no moment at which it works without the lock.
  if (!start.lock.empty()) {
    lock.Reset(open(std::string(start.lock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!lock || flock(lock.get(), LOCK_SH | LOCK_NB)) return FailErrno("locking {}", start.lock);
  }
  int process = -1;
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD | (start.cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
  arguments.pidfd = reinterpret_cast<uint64_t>(&process);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = start.cgroup >= 0 ? static_cast<uint64_t>(start.cgroup) : 0;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (pid < 0) return FailErrno("starting CRIU");
  if (pid == 0) {
    int socket = theirs.get();
    Status failed = BecomeCriu(start, socket, std::move(lock));
    // Answers in CRIU's place: no success, and why.
    std::string text = WireWriter().Bytes(9, failed.error().message()).data();
    (void)!send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    _exit(1);
  }
  CriuProcess criu;
  criu.pid_ = pid;
  criu.has_lock_ = !start.lock.empty();
  criu.process_.Reset(process);
  criu.socket_ = std::move(ours);
  return criu;
}

CriuProcess::~CriuProcess() {
  if (!process_ || has_lock_) return;
  // It makes the processes it restores one after the other: stopped, it makes no more of them.
  SendSignal(process_.get(), SIGSTOP);
  for (int child : ChildrenOf(pid_)) kill(child, SIGKILL);
  SendSignal(process_.get(), SIGKILL);
  Finish(steady_clock::now() + kKillTime);
}

void CriuProcess::Finish(Deadline deadline) {
  socket_.Reset();
  if (!WaitForExit(process_.get(), Left(deadline))) {
    SendSignal(process_.get(), SIGKILL);
    WaitForExit(process_.get(), kKillTime);
  }
  // Nothing to reap where the parent ignores SIGCHLD.
  waitpid(pid_, nullptr, WNOHANG);
  process_.Reset();
}

Result<CriuAnswer> CriuProcess::Receive(Deadline deadline) {
  for (;;) {
    pollfd items[] = {{socket_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
    int n = poll(items, 2, static_cast<int>(std::min<int64_t>(Left(deadline).count(), INT32_MAX)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("waiting for CRIU");
    if (n == 0) return Fail(Code::kDeadlineExceeded, "CRIU took too long");
    // An answer may lie there when it has ended already.
    if (!(items[0].revents & POLLIN)) return Fail(Code::kUnavailable, "CRIU ended unexpectedly");
    auto message = ReceiveMessage(socket_.get(), kMaxAnswer);
    if (!message) return tl::unexpected(std::move(message).error().Context("listening to CRIU"));
    return ParseAnswer(message->data);
  }
}

}  // namespace caisson::engine
