#include "engine/child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "engine/capabilities.h"
#include "engine/mount.h"
#include "engine/trust.h"

namespace caisson::engine {
namespace {

constexpr const char* kEnvdPath = "/.caisson/envd";
constexpr const char* kMeminfoPath = "proc/meminfo";
constexpr const char* kBootIdPath = "proc/sys/kernel/random/boot_id";
constexpr std::string_view kHostName = "caisson";
constexpr int kBootFd = 3;
constexpr unsigned long kKernelFs = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// Waits for the launcher to say `word`; the descriptor that comes with it, if any.
Result<UniqueFd> Await(int boot, std::string_view word) {
  TRY_ASSIGN(FdMessage message, ReceiveMessage(boot, word.size()));
  if (message.data != word) return Fail(Code::kInternal, "the launcher said something else");
  return message.fds.empty() ? UniqueFd() : std::move(message.fds[0]);
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

Result<UniqueFd> ReadOnlyCopy(const char* path) {
  TRY_ASSIGN(UniqueFd copy, CloneMount(AT_FDCWD, path));
  TRY(MakeReadOnly(copy.get()));
  return copy;
}

Status BindReadOnly(const char* from, const char* onto) {
  TRY_ASSIGN(UniqueFd copy, ReadOnlyCopy(from));
  return Attach(copy.get(), onto);
}

// Covers every path with `nothing`.
Status Hide(const std::vector<std::string>& paths, const char* nothing) {
  for (const std::string& path : paths) {
    bool first = &path == &paths.front();
    TRY(first ? BindReadOnly(nothing, path.c_str()) : Bind(paths.front().c_str(), path.c_str()));
  }
  return {};
}

// proc and sys as the sandbox shall see them, in places from which they are moved into the root.
// `ping`: a setting that can be written once the gid map is there, when proc/sys is read-only.
Status MakeKernelFileSystems(const ChildPlan& plan, UniqueFd& ping) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))
    return FailErrno("separating mounts");
  TRY(Mount("proc", kProcPoint, kKernelFs, nullptr));
  TRY(Mount("sysfs", kSysPoint, kKernelFs | MS_RDONLY, nullptr));
  ping.Reset(open("proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC));
  if (!ping) return FailErrno("opening ping_group_range");
  TRY(LimitInotify(*plan.share, kProcPoint));
  // A user namespace inside may mount proc only where nothing of this one is covered.
  if (plan.nesting) return {};
  TRY(BindReadOnly(plan.meminfo.c_str(), kMeminfoPath));
  for (const std::string& path : plan.paths->read_only)
    TRY(BindReadOnly(path.c_str(), path.c_str()));
  TRY(Hide(plan.paths->hidden_files, kEmptyFile));
  TRY(BindReadOnly(plan.boot_id.c_str(), kBootIdPath));
  return Hide(plan.paths->hidden_dirs, kEmptyDir);
}

Status BecomeRoot() {
  if (setgroups(0, nullptr) || setresgid(0, 0, 0) || setresuid(0, 0, 0))
    return FailErrno("becoming root of the sandbox");
  return {};
}

Status Move(const char* from, const char* to) {
  if (move_mount(AT_FDCWD, from, AT_FDCWD, to, 0)) return FailErrno("moving {}", from);
  return {};
}

// SECURITY: until pivot_root, a link in the sandbox's root leads into the host's. A template, or a
// snapshot of what a guest left, must not choose where our mounts go.
Status RefuseLinks(int root) {
  for (const char* path : {"proc", "sys", "dev/pts", kEnvdPath + 1}) {
    open_how how{.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_NO_SYMLINKS};
    UniqueFd fd(static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how)));
    if (!fd && errno == ELOOP)
      return Fail(Code::kInvalidArgument,
                  "/{} of the template leads over a symbolic link; it must be a real path", path);
    if (!fd) return FailErrno("looking for /{} in the template", path);
  }
  return {};
}

// As root of the sandbox, in its root: templates without a place for it get one. Beside envd, so
// no link leads there; nor is it one itself.
Status ShowCaBundle(int bundle) {
  const char* place = kCaBundlePath + 1;
  UniqueFd file(open(place, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0444));
  if (!file) return FailErrno("making a place for the CA bundle");
  return Attach(bundle, place);
}

// The current directory is the sandbox's root when this returns. Until BecomeRoot() this process is
// host root by number, which alone may look into the engine's directory.
Status MakeMounts(int root, uint64_t terminals) {
  TRY(RefuseLinks(root));
  TRY_ASSIGN(UniqueFd envd, ReadOnlyCopy(kEnvdFile));
  UniqueFd bundle;
  if (access(kCaBundleFile, F_OK) == 0) {
    TRY_ASSIGN(bundle, ReadOnlyCopy(kCaBundleFile));
  }
  TRY(Attach(root, kMountPoint));
  TRY(Move(kProcPoint, fmt::format("{}/proc", kMountPoint).c_str()));
  TRY(Move(kSysPoint, fmt::format("{}/sys", kMountPoint).c_str()));
  if (chdir(kMountPoint)) return FailErrno("entering the sandbox's root");
  TRY(Attach(envd.get(), kEnvdPath + 1));
  TRY(BecomeRoot());
  if (bundle) TRY(ShowCaBundle(bundle.get()));
  // SECURITY: without `max`, one sandbox could take every terminal of the machine.
  return Mount("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC,
               fmt::format("newinstance,ptmxmode=0666,mode=0620,gid=5,max={}", terminals).c_str());
}

Status Pivot() {
  // Onto itself: the old root lands on top of the new one and is taken off again.
  if (syscall(SYS_pivot_root, ".", ".")) return FailErrno("changing the root");
  if (umount2(".", MNT_DETACH)) return FailErrno("leaving the host's file systems");
  if (chdir("/")) return FailErrno("entering /");
  return {};
}

// Rights to raise a limit cannot be counted on, so they are only ever lowered.
Status LimitResources(const Limits& limits) {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files)) return FailErrno("reading the limit of open files");
  files.rlim_max = std::min(files.rlim_max, static_cast<rlim_t>(limits.open_files));
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files)) return FailErrno("limiting open files");
  // SECURITY: where the host hands core dumps to a program, that program works outside, as root, on
  // what a guest made up. A limit of one byte means "never" to the kernel; zero does not.
  rlimit core;
  if (getrlimit(RLIMIT_CORE, &core)) return FailErrno("reading the limit of core dumps");
  core.rlim_cur = core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
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

// Network and everything about the process itself that needs no file system.
Status SettleIn(const ChildPlan& plan, UniqueFd ping) {
  // Everybody may ping, without a setuid program.
  constexpr std::string_view kAllGroups = "0 65535";
  if (write(ping.get(), kAllGroups.data(), kAllGroups.size()) < 0)
    return FailErrno("setting ping_group_range");
  TRY(plan.connected ? ConfigureInside(plan.address) : ConfigureLoopback());
  if (sethostname(kHostName.data(), kHostName.size())) return FailErrno("setting the host name");
  TRY(LimitResources(plan.limits));
  umask(022);
  setsid();
  // A new program keeps what is ignored and blocked: the launcher's habits are not envd's.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // The capabilities themselves shrink to the bounding set at execve.
  return LimitBoundingSet(SandboxCapabilities(plan.nesting));
}

Status BecomeEnvd(const ChildPlan& plan, int& boot) {
  TRY(plan.steps->Run(Step::kEnter, [&] { return Enter(plan); }));
  UniqueFd ping;
  TRY(plan.steps->Run(Step::kKernel, [&] { return MakeKernelFileSystems(plan, ping); }));
  TRY(Await(boot, kConnected));
  TRY(plan.steps->Run(Step::kSettle, [&] { return SettleIn(plan, std::move(ping)); }));
  TRY_ASSIGN(UniqueFd root, Await(boot, kRootReady));
  TRY(plan.steps->Run(Step::kMounts,
                      [&] { return MakeMounts(root.get(), plan.share->terminals); }));
  TRY(plan.steps->Run(Step::kPivot, Pivot));
  TRY(ArrangeDescriptors(boot));
  root.Release();  // closed by that
  TRY(plan.steps->Run(Step::kConfine, [&] { return plan.seccomp->Install(); }));

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

// The trees of devices by their bus: disks and cards with their serial numbers.
std::vector<std::string> DevicesOfBuses() {
  std::vector<std::string> found;
  std::error_code ec;
  for (const char* place : {"/sys/devices", "/sys/devices/virtual"})
    for (const auto& entry : std::filesystem::directory_iterator(place, ec)) {
      std::string name = entry.path().filename().string();
      for (const char* bus : {"ACPI", "LNXSYSTM", "dmi", "nvme", "pci", "platform", "pnp", "scsi",
                              "soc", "vbd", "virtio", "xen"})
        if (name.starts_with(bus)) found.push_back(entry.path().string().substr(1));
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

KernelPaths KernelPaths::Find() {
  // What containers commonly hide: memory and keys of the kernel, timing of other sandboxes, the
  // machine's firmware and devices, and the block devices, whose files name every other sandbox.
  // debugfs, tracefs and securityfs are not mounted inside to begin with.
  KernelPaths paths{
      Existing({"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/interrupts"}),
      Existing({"/proc/acpi", "/proc/asound", "/proc/pressure", "/proc/scsi", "/sys/firmware",
                "/sys/devices/virtual/block", "/sys/devices/virtual/powercap"}),
      Existing({"/proc/sys", "/proc/sysrq-trigger", "/proc/bus", "/proc/fs", "/proc/irq"})};
  for (std::string& path : DevicesOfBuses()) paths.hidden_dirs.push_back(std::move(path));
  return paths;
}

std::vector<HostMount> HostMounts(const KernelPaths& paths, bool nesting, bool ca_bundle) {
  std::vector<HostMount> mounts = {{kEnvdPath, kShowsEnvd}};
  if (ca_bundle) mounts.push_back({kCaBundlePath, kShowsCaBundle});
  if (nesting) return mounts;
  mounts.push_back({std::string("/") + kMeminfoPath, kShowsMeminfo});
  mounts.push_back({std::string("/") + kBootIdPath, kShowsBootId});
  for (const std::string& path : paths.hidden_files) mounts.push_back({"/" + path, kShowsNothing});
  for (const std::string& path : paths.hidden_dirs) mounts.push_back({"/" + path, kShowsEmptyDir});
  return mounts;
}

Result<MachineShare> MachineShare::Find() {
  constexpr uint64_t kParts = 4;
  auto part = [](const char* setting) -> Result<uint64_t> {
    TRY_ASSIGN(std::string text, ReadFile(setting));
    auto total = ParseInt<uint64_t>(Trim(text));
    if (!total) return Fail(Code::kInternal, "{} is not a number", setting);
    return std::max<uint64_t>(*total / kParts, 1);
  };
  MachineShare share;
  TRY_ASSIGN(share.inotify_instances, part("/proc/sys/fs/inotify/max_user_instances"));
  TRY_ASSIGN(share.inotify_watches, part("/proc/sys/fs/inotify/max_user_watches"));
  TRY_ASSIGN(share.terminals, part("/proc/sys/kernel/pty/max"));
  return share;
}

Status LimitInotify(const MachineShare& share, const std::string& proc) {
  TRY(WriteKernelFile(proc + "/sys/user/max_inotify_instances",
                      std::to_string(share.inotify_instances)));
  return WriteKernelFile(proc + "/sys/user/max_inotify_watches",
                         std::to_string(share.inotify_watches));
}

void RunChild(const ChildPlan& plan) {
  int boot = plan.boot;
  Status failed = BecomeEnvd(plan, boot);
  std::string text = kFailed + failed.error().message();
  (void)!send(boot, text.data(), text.size(), MSG_NOSIGNAL);
  _exit(1);
}

}  // namespace caisson::engine
