#include "engine/root.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engine/capabilities.h"
#include "engine/mount.h"

namespace caisson::engine {
namespace {

// Acts on files as another user, with all our capabilities.
class FileUser {
 public:
  explicit FileUser(uid_t id) {
    setfsgid(id);
    setfsuid(id);
  }
  ~FileUser() {
    setfsuid(0);
    setfsgid(0);
  }
  FileUser(const FileUser&) = delete;
  FileUser& operator=(const FileUser&) = delete;
};

Result<UniqueFd> OpenDirectory(int parent, const char* name) {
  UniqueFd fd(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return FailErrno("opening {} of the sandbox's disk", name);
  return fd;
}

// A detached mount that hangs in the engine's private mount namespace for a moment.
class Staged {
 public:
  static Result<Staged> Attach(int mount, std::string path) {
    if (mkdir(path.c_str(), 0700) && errno != EEXIST) return FailErrno("making {}", path);
    Staged staged(std::move(path));
    TRY(engine::Attach(mount, staged.path_.c_str()));
    return staged;
  }
  Staged(Staged&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~Staged() {
    if (path_.empty()) return;
    umount2(path_.c_str(), MNT_DETACH);
    rmdir(path_.c_str());
  }

 private:
  explicit Staged(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Layers {
  int lower, disk, upper, work;
};

Status SetOptions(FileSystem& overlay) {
  // Renaming a directory of the template works, as everywhere else (npm does it).
  TRY(overlay.SetString("redirect_dir", "on"));
  // Never waits for a disk: neither for a guest's sync nor when it is unmounted.
  // stat() and the kernel's own tables give one number to a file: CRIU finds what inotify watches.
  TRY(overlay.SetString("xino", "on"));
  return overlay.SetFlag("volatile");
}

// From Linux 6.13 on.
Result<UniqueFd> MountByDescriptor(const Layers& layers) {
  TRY_ASSIGN(FileSystem overlay, FileSystem::Open("overlay"));
  TRY(overlay.SetFd("lowerdir+", layers.lower));
  TRY(overlay.SetFd("upperdir", layers.upper));
  TRY(overlay.SetFd("workdir", layers.work));
  TRY(SetOptions(overlay));
  return overlay.Mount(0);
}

// Before that the kernel takes layers by path, and only mounts of the caller's own namespace. The
// paths go through /proc/self/fd, so that no character of a directory's name has a meaning.
Result<UniqueFd> MountByPath(const Layers& layers) {
  TRY_ASSIGN(Staged lower, Staged::Attach(layers.lower, fmt::format("stage-{}-lower", getpid())));
  TRY_ASSIGN(Staged disk, Staged::Attach(layers.disk, fmt::format("stage-{}-disk", getpid())));
  auto path = [](int fd) { return fmt::format("/proc/self/fd/{}", fd); };
  TRY_ASSIGN(FileSystem overlay, FileSystem::Open("overlay"));
  TRY(overlay.SetString("lowerdir", path(layers.lower)));
  TRY(overlay.SetString("upperdir", path(layers.upper)));
  TRY(overlay.SetString("workdir", path(layers.work)));
  TRY(SetOptions(overlay));
  return overlay.Mount(0);
}

}  // namespace

Result<UniqueFd> MountRoot(int template_root, int disk, int user_namespace, uid_t uid_base,
                           bool by_path) {
  TRY_ASSIGN(UniqueFd lower, CloneMount(template_root, ""));
  TRY(MapOwners(lower.get(), user_namespace));
  TRY(MapOwners(disk, user_namespace));
  TRY_ASSIGN(UniqueFd upper, OpenDirectory(disk, "upper"));
  TRY_ASSIGN(UniqueFd work, OpenDirectory(disk, "work"));

  // The overlay remembers who made it and acts on its layers as them. Through the mapped mounts,
  // host root has no name: without this the kernel cannot create work/work and quietly mounts the
  // whole overlay read-only.
  FileUser sandbox_root(uid_base);
  TRY(RaiseEffective());
  Layers layers{lower.get(), disk, upper.get(), work.get()};
  auto mount = by_path ? MountByPath(layers) : MountByDescriptor(layers);
  if (!mount && !by_path && mount.error().sys_errno() == EINVAL) mount = MountByPath(layers);
  if (!mount) return tl::unexpected(std::move(mount).error());

  struct statvfs state;
  if (fstatvfs(mount->get(), &state)) return FailErrno("looking at the sandbox's root");
  if (state.f_flag & ST_RDONLY)
    return Fail(Code::kInternal, "the kernel mounted the sandbox's root read-only");
  return mount;
}

}  // namespace caisson::engine
