#include "engine/creation.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/child.h"
#include "engine/pidfd.h"
#include "engine/root.h"

namespace caisson::engine {
namespace {

// envd answers even while the sandbox's own processes use all their CPU time.
constexpr int kEnvdNice = -10;
constexpr std::chrono::seconds kKillTimeout{10};
constexpr size_t kMaxExplanation = 4096;

std::chrono::milliseconds Left(Deadline deadline) {
  return std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline - std::chrono::steady_clock::now()));
}

}  // namespace

Creation::Creation(Host& host, const Spec& spec, Deadline deadline, int abort)
    : host_(host), spec_(spec), deadline_(deadline), abort_(abort) {}

Creation::~Creation() {
  if (!slot_) return;
  KillChild();
  root_.Reset();
  network_namespace_.Reset();
  disk_root_.Reset();
  disk_ = {};
  if (!cgroup_ || cgroup_.Remove(kKillTimeout)) return;
  // SECURITY: something inside still lives, so its uid range must not be given to another sandbox.
  LogError("a sandbox that failed to start cannot be removed completely", {{"sandbox", spec_.id}});
  cgroup_.Keep();
  record_file_.Keep();
  slot_.Keep();
}

void Creation::KillChild() {
  if (!process_) return;
  SendSignal(process_.get(), SIGKILL);
  if (!WaitForExit(process_.get(), kKillTimeout))
    LogError("a killed process does not end", {{"sandbox", spec_.id}, {"pid", record_.pid}});
  process_.Reset();
}

Result<Sandbox> Creation::Run() {
  auto begin = std::chrono::steady_clock::now();
  host_.steps().Reset();
  if (Status built = RunSteps(); !built)
    return tl::unexpected(PreferChildsWords(std::move(built).error()));
  auto took = std::chrono::steady_clock::now() - begin;
  LogDebug("sandbox built", {{"sandbox", spec_.id},
                             {"ms", std::chrono::duration<double, std::milli>(took).count()},
                             {"steps", host_.steps().Summary()}});
  slot_.Keep();
  record_file_.Keep();
  cgroup_.Keep();
  disk_.Keep();
  return Sandbox{{spec_.id, record_.pid, record_.created_at},
                 std::move(process_),
                 std::move(network_namespace_),
                 std::move(disk_root_)};
}

Status Creation::RunSteps() {
  Steps& steps = host_.steps();
  TRY(steps.Run(Step::kSlot, [this] { return TakeSlot(); }));
  TRY(steps.Run(Step::kRecord, [this] { return MakeRecord(); }));
  TRY(steps.Run(Step::kCgroup, [this] { return MakeCgroup(); }));
  TRY(steps.Run(Step::kDisk, [this] { return MakeDisk(); }));
  TRY(steps.Run(Step::kClone, [this] { return Clone(); }));
  TRY(steps.Run(Step::kIdentity, [this] { return Identify(); }));
  TRY(steps.Run(Step::kVeth, [this] { return Connect(); }));
  TRY(steps.Run(Step::kRoot, [this] { return MakeRoot(); }));
  TRY(steps.Run(Step::kRelease, [this] { return Release(); }));
  return steps.Run(Step::kBoot, [this] { return Boot(); });
}

Status Creation::TakeSlot() {
  TRY_ASSIGN(slot_, host_.slots().Allocate(spec_.id));
  return {};
}

Status Creation::MakeRecord() {
  TRY_ASSIGN(record_file_, RecordFile::Create(spec_.id));
  record_ = {.id = spec_.id,
             .boot_id = host_.boot_id(),
             .slot = slot_.number(),
             .network = spec_.network,
             .limits = spec_.limits,
             .created_at = Now()};
  return {};
}

Status Creation::MakeCgroup() {
  TRY_ASSIGN(cgroup_, Cgroup::Create(host_.cgroups(), spec_.id, spec_.limits));
  return {};
}

Status Creation::MakeDisk() {
  TRY_ASSIGN(const BlankImage* blank, host_.blank_images().Get(spec_.limits.disk_bytes));
  TRY_ASSIGN(disk_, Disk::Create(*blank, host_.shelf().ImagePath(spec_.id), spec_.id));
  record_.loop = disk_.loop();
  return {};
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
                 .steps = &host_.steps(),
                 .meminfo = std::move(meminfo),
                 .limits = spec_.limits,
                 .nesting = host_.config().nesting,
                 .connected = spec_.network == Network::kInternet && host_.link(),
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

Status Creation::Identify() {
  std::string proc = fmt::format("/proc/{}/", record_.pid);
  std::string map = fmt::format("0 {} {}\n", slot_.uid_base(), kIdsPerSandbox);
  TRY(WriteKernelFile(proc + "uid_map", map));
  TRY(WriteKernelFile(proc + "gid_map", map));
  user_namespace_.Reset(open((proc + "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  network_namespace_.Reset(open((proc + "ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  if (!user_namespace_ || !network_namespace_) return FailErrno("opening the new namespaces");
  // Inside, nobody has the right to; if we have not either, it is no reason to give up.
  setpriority(PRIO_PROCESS, static_cast<id_t>(record_.pid), kEnvdNice);
  TRY_ASSIGN(record_.start_time, ReadStartTime(record_.pid));
  return record_file_.Write(record_);
}

Status Creation::Connect() {
  if (spec_.network == Network::kInternet && host_.link())
    TRY(host_.link()->CreateVeth(slot_, network_namespace_.get()));
  Tell(kConnected, -1);
  return {};
}

Status Creation::MakeRoot() {
  TRY_ASSIGN(int lower, host_.OpenTemplate(spec_.root_dir));
  // Only now: while the process was made, the kernel could read the disk's beginning.
  TRY(disk_.Mount());
  TRY_ASSIGN(disk_root_, disk_.OpenRoot());
  TRY_ASSIGN(root_, MountRoot(lower, disk_.mount(), user_namespace_.get(), slot_.uid_base(),
                              host_.config().overlay_by_path));
  disk_.CloseMount();  // the overlay holds it now
  user_namespace_.Reset();
  return {};
}

Status Creation::Release() {
  Tell(kRootReady, root_.get());
  root_.Reset();
  return SetNonBlocking(boot_.get());
}

// If the child has ended, what it said is the better explanation; AwaitReady() finds it.
void Creation::Tell(std::string_view word, int fd) {
  (void)SendMessage(boot_.get(), word, fd >= 0 ? std::vector<int>{fd} : std::vector<int>{});
}

Status Creation::Boot() {
  TRY(SendBootData());
  TRY(AwaitReady());
  if (spec_.network == Network::kInternet && host_.link()) TRY(host_.link()->Settle(slot_));
  return record_file_.MarkReady();
}

Status Creation::Wait(short events) {
  pollfd items[2] = {{boot_.get(), events, 0}, {abort_, POLLIN, 0}};
  int n = poll(items, abort_ >= 0 ? 2 : 1, static_cast<int>(Left(deadline_).count()));
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
    if (!said.empty() && said[0] == kReady) return {};
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
