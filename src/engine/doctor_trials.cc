#include "engine/doctor_trials.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "engine/cgroup.h"
#include "engine/disk.h"
#include "engine/mount.h"
#include "engine/root.h"
#include "engine/seccomp.h"
#include "engine/slot.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

constexpr int64_t kTrialDiskBytes = 64 << 20;
constexpr uint64_t kSandboxNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                        CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP;

// A child that only waits to be killed, with these clone3 flags; killed with the object.
class IdleChild {
 public:
  static Result<IdleChild> Start(uint64_t flags, int cgroup = -1) {
    clone_args args{};
    args.flags = flags | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<uint64_t>(std::max(cgroup, 0));
    auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
    if (pid < 0) return FailErrno("clone3");
    if (pid == 0)
      while (true) pause();
    return IdleChild(pid);
  }
  IdleChild(IdleChild&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  IdleChild& operator=(IdleChild&&) = delete;
  ~IdleChild() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  explicit IdleChild(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// The range of slot 0, which no sandbox ever gets.
Status MapIds(const Config& config, pid_t pid) {
  std::string map = fmt::format("0 {} {}", config.uid_base, kIdsPerSandbox);
  TRY(WriteKernelFile(fmt::format("/proc/{}/uid_map", pid), map));
  return WriteKernelFile(fmt::format("/proc/{}/gid_map", pid), map);
}

// A process that was killed leaves its cgroup a little later, on a busy machine after seconds.
bool RemoveCgroup(const std::string& path) {
  (void)WriteKernelFile(path + "/cgroup.kill", "1");  // a trial that took too long killed nothing
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (rmdir(path.c_str()) != 0) {
    if (errno != EBUSY || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

Result<Disk> MakeDisk(BlankImages& images, const TrialFolder& folder) {
  // Its paths are relative to the engine's directory.
  if (chdir(folder.path().c_str()) != 0) return FailErrno("cannot enter the folder of the trial");
  if (mkdir(kBlankDir, 0700) != 0 && errno != EEXIST) return FailErrno("cannot make a folder");
  TRY_ASSIGN(const BlankImage* blank, images.Get(kTrialDiskBytes));
  TRY_ASSIGN(Disk disk, Disk::Create(*blank, "disk.img"));
  TRY(disk.Mount());
  return disk;
}

}  // namespace

Status TryNamespaces(const Config& config) {
  return TryInChild([&]() -> Status {
    TRY_ASSIGN(IdleChild child, IdleChild::Start(kSandboxNamespaces));
    return MapIds(config, child.pid());
  });
}

Status TryCgroup() {
  TRY_ASSIGN(CgroupLayout layout, CgroupLayout::Detect());
  std::string path = fmt::format("{}/caisson-doctor-{}", layout.bases[kUnifiedTree], getpid());
  if (mkdir(path.c_str(), 0755) != 0) return FailErrno("cannot make a cgroup");
  Status tried = TryInChild([&]() -> Status {
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return FailErrno("cannot open the cgroup");
    auto child = IdleChild::Start(0, fd.get());
    if (!child)
      return tl::unexpected(std::move(child).error().Context("cannot start a process in it"));
    TRY(WriteKernelFile(path + "/cgroup.freeze", "1"));
    return WriteKernelFile(path + "/cgroup.kill", "1");
  });
  if (!RemoveCgroup(path) && tried) return FailErrno("cannot remove the cgroup {}", path);
  return tried;
}

Status TrySeccomp(const Config& config) {
  return TryInChild([&]() -> Status {
    TRY_ASSIGN(SeccompFilter filter, SeccompFilter::Compile(config.nesting));
    return filter.Install();
  });
}

Result<TrialFolder> TrialFolder::Make(const std::string& data_dir) {
  std::filesystem::path parent = data_dir;
  std::error_code ignored;
  while (!std::filesystem::is_directory(parent, ignored) && parent.has_relative_path())
    parent = parent.parent_path();
  std::string path = (parent / ".caisson-doctor-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) return FailErrno("cannot write to {}", parent.string());
  return TrialFolder(path);
}

TrialFolder::~TrialFolder() {
  if (path_.empty()) return;
  if (Status removed = RemoveTree(path_); !removed)
    LogWarn("cannot remove the folder of a trial", {{"error", removed.error().message()}});
}

Status TryDisk(const TrialFolder& folder) {
  return TryInChild([&]() -> Status {
    BlankImages images;
    TRY(MakeDisk(images, folder));
    return {};
  });
}

Status TryRoot(const Config& config, const TrialFolder& folder) {
  return TryInChild([&]() -> Status {
    TRY(TakeMountNamespace());
    BlankImages images;
    TRY_ASSIGN(Disk disk, MakeDisk(images, folder));
    if (mkdir("template", 0755) != 0 && errno != EEXIST) return FailErrno("cannot make a folder");
    UniqueFd lower(open("template", O_PATH | O_DIRECTORY | O_CLOEXEC));
    TRY_ASSIGN(IdleChild child, IdleChild::Start(CLONE_NEWUSER));
    TRY(MapIds(config, child.pid()));
    UniqueFd user_namespace(
        open(fmt::format("/proc/{}/ns/user", child.pid()).c_str(), O_RDONLY | O_CLOEXEC));
    TRY(MountRoot(lower.get(), {}, disk.mount(), user_namespace.get(),
                  static_cast<uid_t>(config.uid_base), config.overlay_by_path));
    return {};
  });
}

}  // namespace caisson::engine
