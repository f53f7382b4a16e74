#include "engine/creation.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/child.h"
#include "engine/pidfd.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxExplanation = 4096;

}  // namespace

Result<Sandbox> Creation::Run() {
  auto begin = std::chrono::steady_clock::now();
  host_.steps().Reset();
  if (Status built = RunSteps(); !built)
    return tl::unexpected(PreferChildsWords(std::move(built).error()));
  auto took = std::chrono::steady_clock::now() - begin;
  LogDebug("sandbox built", {{"sandbox", spec_.id},
                             {"ms", std::chrono::duration<double, std::milli>(took).count()},
                             {"steps", host_.steps().Summary()}});
  return Finish(false);
}

Status Creation::RunSteps() {
  Steps& steps = host_.steps();
  TRY(steps.Run(Step::kSlot, [this] { return TakeSlot(); }));
  TRY(steps.Run(Step::kRecord, [this] { return MakeRecord(); }));
  TRY(steps.Run(Step::kCgroup, [this] { return MakeCgroup(); }));
  TRY(steps.Run(Step::kDisk, [this] { return MakeDisk(); }));
  TRY(steps.Run(Step::kClone, [this] { return Clone(); }));
  TRY(steps.Run(Step::kIdentity, [this] { return MapIds(); }));
  TRY(steps.Run(Step::kVeth, [this] { return Connect(); }));
  TRY(steps.Run(Step::kRoot, [this] { return MakeRoot(user_namespace_.get()); }));
  TRY(steps.Run(Step::kRelease, [this] { return Release(); }));
  return steps.Run(Step::kBoot, [this] { return Boot(); });
}

Status Creation::Clone() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    return FailErrno("making the boot socket");
  boot_.Reset(ends[0]);
  UniqueFd theirs(ends[1]);
  TRY_ASSIGN(CgroupEntry entry, cgroup_.PrepareEntry());
  TRY_ASSIGN(std::string meminfo, host_.MeminfoFile(spec_.limits.memory_bytes));
  ChildPlan plan{.boot = theirs.get(),
                 .cgroup = &entry,
                 .seccomp = &host_.seccomp(),
                 .paths = &host_.kernel_paths(),
                 .share = &host_.share(),
                 .steps = &host_.steps(),
                 .meminfo = std::move(meminfo),
                 .boot_id = RecordFile::BootIdPath(spec_.id),
                 .limits = spec_.limits,
                 .nesting = host_.config().nesting,
                 .connected = connected(),
                 .address = InsideOf(slot_)};
  int process = -1;
  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS |
                    CLONE_NEWIPC | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<uint64_t>(&process);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(entry.v2.get());
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (pid < 0) return FailErrno("creating the sandbox's namespaces");
  if (pid == 0) {
    boot_.Reset();  // so that the launcher's death ends this process
    RunChild(plan);
  }
  process_.Reset(process);
  record_.pid = pid;
  return {};
}

Status Creation::MapIds() {
  std::string proc = fmt::format("/proc/{}/", record_.pid);
  std::string map = fmt::format("0 {} {}\n", slot_.uid_base(), kIdsPerSandbox);
  TRY(WriteKernelFile(proc + "uid_map", map));
  TRY(WriteKernelFile(proc + "gid_map", map));
  user_namespace_.Reset(open((proc + "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!user_namespace_) return FailErrno("opening the new user namespace");
  return Identify();
}

Status Creation::Connect() {
  TRY(MakeLink(network_namespace_.get()));
  Tell(kConnected, -1);
  return {};
}

Status Creation::Release() {
  Tell(kRootReady, root_.get());
  root_.Reset();
  user_namespace_.Reset();
  return SetNonBlocking(boot_.get());
}

// If the child has ended, what it said is the better explanation; AwaitReady() finds it.
void Creation::Tell(std::string_view word, int fd) {
  (void)SendMessage(boot_.get(), word, fd >= 0 ? std::vector<int>{fd} : std::vector<int>{});
}

Status Creation::Boot() {
  TRY(SendBootData());
  TRY(AwaitReady());
  if (connected()) TRY(host_.link()->Settle(slot_));
  return record_file_.MarkReady();
}

Status Creation::Wait(short events) {
  pollfd items[2] = {{boot_.get(), events, 0}, {abort_, POLLIN, 0}};
  int n = poll(items, abort_ >= 0 ? 2 : 1, static_cast<int>(Left().count()));
  if (n < 0 && errno != EINTR) return FailErrno("waiting for envd");
  if (abort_ >= 0 && items[1].revents)
    return Fail(Code::kCanceled, "nobody waits for this sandbox any more");
  if (n == 0) return Fail(Code::kDeadlineExceeded, "envd was not ready in time");
  return {};
}

Status Creation::SendBootData() {
  std::string_view rest = spec_.boot;
  while (!rest.empty()) {
    ssize_t n = send(boot_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0)
      rest.remove_prefix(static_cast<size_t>(n));
    else if (errno == EAGAIN)
      TRY(Wait(POLLOUT));
    else if (errno == EPIPE || errno == ECONNRESET)
      return {};  // it ended; AwaitReady() finds out why
    else if (errno != EINTR)
      return FailErrno("sending boot data to envd");
  }
  shutdown(boot_.get(), SHUT_WR);
  return {};
}

Status Creation::AwaitReady() {
  std::string said;
  for (;;) {
    TRY(Wait(POLLIN));
    char buffer[512];
    ssize_t n = recv(boot_.get(), buffer, sizeof(buffer), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n > 0) said.append(buffer, static_cast<size_t>(n));
    // Its end of the socket must be closed too: it is the host's, and CRIU could not save it.
    if (!said.empty() && said[0] == kReady && n <= 0) return {};
    if (!said.empty() && said[0] == kReady) continue;
    // SECURITY: what comes out of a sandbox is bounded.
    if (n <= 0 || said.size() > kMaxExplanation) return tl::unexpected(Explain(std::move(said)));
  }
}

Error Creation::PreferChildsWords(Error error) {
  char said[kMaxExplanation];
  ssize_t n = boot_ ? recv(boot_.get(), said, sizeof(said), MSG_DONTWAIT) : 0;
  if (n > 0 && said[0] == kFailed) return Explain(std::string(said, static_cast<size_t>(n)));
  return error;
}

Error Creation::Explain(std::string said) {
  if (!said.empty() && said[0] == kFailed)
    return Error(Code::kInternal, "starting the sandbox: " + said.substr(1, kMaxExplanation));
  WaitForExit(process_.get(), std::chrono::seconds(1));
  auto status = ExitStatus(process_.get());
  return Error(Code::kInternal,
               fmt::format("envd ended before it was ready ({})",
                           status ? DescribeExit(*status) : "the kernel does not say how"));
}

}  // namespace caisson::engine
