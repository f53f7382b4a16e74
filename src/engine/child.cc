#include "engine/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/capabilities.h"
#include "engine/mount.h"

namespace caisson::engine {
namespace {

constexpr const char* kEnvdPath = "/.caisson/envd";
constexpr std::string_view kHostName = "caisson";
constexpr int kBootFd = 3;
constexpr rlim_t kMaxOpenFiles = 524'288;
constexpr rlim_t kDefaultOpenFiles = 65'536;
constexpr unsigned long kKernelFs = MS_NOSUID | MS_NODEV | MS_NOEXEC;

struct Handover {
  UniqueFd root, envd, meminfo, empty;
};

Result<Handover> ReceiveMounts(int boot) {
  TRY_ASSIGN(FdMessage message, ReceiveMessage(boot, 1));
  auto& fds = message.fds;
  if (fds.size() != 4) return Fail(Code::kInternal, "the launcher sent no mounts");
  return Handover{std::move(fds[0]), std::move(fds[1]), std::move(fds[2]), std::move(fds[3])};
}

Status Enter(const ChildPlan& plan) {
  TRY(plan.cgroup->EnterV1());
  // After that, so that the namespace is rooted at the sandbox's own cgroups.
  if (unshare(CLONE_NEWCGROUP)) return FailErrno("taking a cgroup namespace");
  return {};
}

Status Mount(const char* type, const char* target, unsigned long flags, const char* options) {
  if (mount(type, target, type, flags, options)) return FailErrno("mounting {}", type);
  return {};
}

Status Bind(const char* from, const char* onto) {
  if (mount(from, onto, nullptr, MS_BIND, nullptr)) return FailErrno("covering {}", onto);
  return {};
}

Status BindReadOnly(const char* path) {
  TRY_ASSIGN(UniqueFd copy, CloneMount(AT_FDCWD, path));
  TRY(MakeReadOnly(copy.get()));
  return Attach(copy.get(), path);
}

Status HideKernelPaths(const KernelPaths& paths, int empty) {
  for (const std::string& path : paths.read_only) TRY(BindReadOnly(path.c_str()));
  for (const std::string& path : paths.hidden_files) TRY(Bind("dev/null", path.c_str()));
  if (paths.hidden_dirs.empty()) return {};
  const std::string& first = paths.hidden_dirs.front();
  TRY(Attach(empty, first.c_str()));
  for (const std::string& path : std::span(paths.hidden_dirs).subspan(1))
    TRY(Bind(first.c_str(), path.c_str()));
  return {};
}

Status BecomeRoot() {
  if (setgroups(0, nullptr) || setresgid(0, 0, 0) || setresuid(0, 0, 0))
    return FailErrno("becoming root of the sandbox");
  return {};
}

// The current directory is the sandbox's root when this returns.
Status MakeMounts(const ChildPlan& plan, const Handover& handover) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))
    return FailErrno("separating mounts");
  // Still host root by number, which alone may look into the engine's directory.
  TRY(Attach(handover.root.get(), kMountPoint));
  if (chdir(kMountPoint)) return FailErrno("entering the sandbox's root");
  TRY(BecomeRoot());
  TRY(Attach(handover.envd.get(), kEnvdPath + 1));
  TRY(Mount("proc", "proc", kKernelFs, nullptr));
  TRY(Mount("sysfs", "sys", kKernelFs | MS_RDONLY, nullptr));
  TRY(Mount("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC,
            "newinstance,ptmxmode=0666,mode=0620,gid=5"));
  // Everybody may ping, without a setuid program.
  TRY(WriteKernelFile("proc/sys/net/ipv4/ping_group_range", "0 65535"));
  // A user namespace inside may mount proc only where nothing of this one is covered.
  if (plan.nesting) return {};
  TRY(Attach(handover.meminfo.get(), "proc/meminfo"));
  return HideKernelPaths(*plan.paths, handover.empty.get());
}

Status Pivot() {
  // Onto itself: the old root lands on top of the new one and is taken off again.
  if (syscall(SYS_pivot_root, ".", ".")) return FailErrno("changing the root");
  if (umount2(".", MNT_DETACH)) return FailErrno("leaving the host's file systems");
  if (chdir("/")) return FailErrno("entering /");
  return {};
}

Status ConfigureNetwork(const ChildPlan& plan) {
  TRY(plan.connected ? ConfigureInside(plan.address) : ConfigureLoopback());
  if (sethostname(kHostName.data(), kHostName.size())) return FailErrno("setting the host name");
  return {};
}

// Rights to raise a limit cannot be counted on, so they are only ever lowered.
Status LimitResources() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files)) return FailErrno("reading the limit of open files");
  files.rlim_max = std::min(files.rlim_max, kMaxOpenFiles);
  files.rlim_cur = std::min(files.rlim_max, kDefaultOpenFiles);
  if (setrlimit(RLIMIT_NOFILE, &files)) return FailErrno("limiting open files");
  rlimit core;
  if (getrlimit(RLIMIT_CORE, &core)) return FailErrno("reading the limit of core dumps");
  core.rlim_cur = 0;
  if (setrlimit(RLIMIT_CORE, &core)) return FailErrno("limiting core dumps");
  return {};
}

// Descriptors 0-2 are opened inside, 3 is the boot socket, and there is no other.
Status ArrangeDescriptors(int& boot) {
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return FailErrno("opening /dev/null of the template");
  for (int fd : {0, 1, 2})
    if (dup2(null.get(), fd) < 0) return FailErrno("opening standard descriptors");
  null.Reset();
  // `boot` itself is above 2: a launcher keeps the lower ones occupied.
  if (boot != kBootFd && dup2(boot, kBootFd) < 0) return FailErrno("placing the boot socket");
  boot = kBootFd;
  fcntl(boot, F_SETFD, 0);
  if (close_range(kBootFd + 1, ~0u, 0)) return FailErrno("closing inherited descriptors");
  return {};
}

Status Confine(const ChildPlan& plan) {
  TRY(LimitResources());
  umask(022);
  setsid();
  // A new program keeps what is ignored and blocked: the launcher's habits are not envd's.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // The capabilities themselves shrink to the bounding set at execve.
  TRY(LimitBoundingSet(SandboxCapabilities(plan.nesting)));
  return plan.seccomp->Install();
}

Status BecomeEnvd(const ChildPlan& plan, int& boot) {
  TRY(plan.steps->Run(Step::kEnter, [&] { return Enter(plan); }));
  TRY_ASSIGN(Handover handover, ReceiveMounts(plan.boot));
  TRY(plan.steps->Run(Step::kMounts, [&] { return MakeMounts(plan, handover); }));
  TRY(plan.steps->Run(Step::kPivot, Pivot));
  TRY(plan.steps->Run(Step::kInterface, [&] { return ConfigureNetwork(plan); }));
  handover = {};
  TRY(plan.steps->Run(Step::kConfine, [&] { return Confine(plan); }));
  TRY(ArrangeDescriptors(boot));

  std::string memory = fmt::format("CAISSON_MEMORY_BYTES={}", plan.limits.memory_bytes);
  std::string cpus = fmt::format("CAISSON_CPUS={}", plan.limits.cpus);
  char* environment[] = {
      const_cast<char*>("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
      memory.data(), cpus.data(), nullptr};
  char* arguments[] = {const_cast<char*>("envd"), nullptr};
  execve(kEnvdPath, arguments, environment);
  return FailErrno("starting envd");
}

std::vector<std::string> Existing(std::initializer_list<const char*> paths) {
  std::vector<std::string> found;
  for (const char* path : paths)
    if (access(path, F_OK) == 0) found.emplace_back(path + 1);  // relative to the new root
  return found;
}

}  // namespace

KernelPaths KernelPaths::Find() {
  // What containers commonly hide: memory and keys of the kernel, timing of other sandboxes, the
  // machine's firmware. debugfs, tracefs and securityfs are not mounted inside to begin with.
  return {
      Existing({"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/interrupts",
                "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup"}),
      Existing({"/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/firmware",
                "/sys/devices/virtual/powercap"}),
      Existing({"/proc/sys", "/proc/sysrq-trigger", "/proc/bus", "/proc/fs", "/proc/irq"})};
}

void RunChild(const ChildPlan& plan) {
  int boot = plan.boot;
  Status failed = BecomeEnvd(plan, boot);
  std::string text = kFailed + failed.error().message();
  (void)!send(boot, text.data(), text.size(), MSG_NOSIGNAL);
  _exit(1);
}

}  // namespace caisson::engine
