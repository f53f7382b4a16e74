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
  std::vector<UniqueFd> mounts;  // keep `lower` alive
  std::vector<UniqueFd> lower;   // directories, top first
  int disk = -1;
  UniqueFd upper, work;
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
  for (const UniqueFd& lower : layers.lower) TRY(overlay.SetFd("lowerdir+", lower.get()));
  TRY(overlay.SetFd("upperdir", layers.upper.get()));
  TRY(overlay.SetFd("workdir", layers.work.get()));
  TRY(SetOptions(overlay));
  return overlay.Mount(0);
}

// Before that the kernel takes layers by path, and only mounts of the caller's own namespace. The
// paths go through /proc/self/fd, so that no character of a directory's name has a meaning.
Result<UniqueFd> MountByPath(const Layers& layers) {
  std::vector<Staged> staged;
  auto stage = [&](int mount) -> Status {
    TRY_ASSIGN(Staged one,
               Staged::Attach(mount, fmt::format("stage-{}-{}", getpid(), staged.size())));
    staged.push_back(std::move(one));
    return {};
  };
  for (const UniqueFd& mount : layers.mounts) TRY(stage(mount.get()));
  TRY(stage(layers.disk));
  auto path = [](int fd) { return fmt::format("/proc/self/fd/{}", fd); };
  std::string lower;
  for (const UniqueFd& fd : layers.lower) lower += (lower.empty() ? "" : ":") + path(fd.get());
  TRY_ASSIGN(FileSystem overlay, FileSystem::Open("overlay"));
  TRY(overlay.SetString("lowerdir", lower));
  TRY(overlay.SetString("upperdir", path(layers.upper.get())));
  TRY(overlay.SetString("workdir", path(layers.work.get())));
  TRY(SetOptions(overlay));
  return overlay.Mount(0);
}

// An overlay that was mounted `volatile` marks its work directory: it would not be mounted again.
// Everything in it was written out when the sandbox was saved.
void ClearVolatileMark(int work) {
  unlinkat(work, "work/incompat/volatile/dirty", 0);
  unlinkat(work, "work/incompat/volatile", AT_REMOVEDIR);
}

// Copies of the mounts, seen through the sandbox's ids. Top first: the last layer, ..., the
// template.
Result<Layers> MapLayers(int template_root, const std::vector<int>& layers, int disk,
                         int user_namespace) {
  Layers mapped;
  for (size_t i = layers.size(); i-- > 0;) {
    TRY_ASSIGN(UniqueFd mount, CloneMount(layers[i], ""));
    TRY(MapOwners(mount.get(), user_namespace));
    TRY_ASSIGN(UniqueFd upper, OpenDirectory(mount.get(), "upper"));
    mapped.mounts.push_back(std::move(mount));
    mapped.lower.push_back(std::move(upper));
  }
  TRY_ASSIGN(UniqueFd mount, CloneMount(template_root, ""));
  TRY(MapOwners(mount.get(), user_namespace));
  TRY_ASSIGN(UniqueFd root, OpenDirectory(mount.get(), "."));
  mapped.mounts.push_back(std::move(mount));
  mapped.lower.push_back(std::move(root));
  TRY(MapOwners(disk, user_namespace));
  mapped.disk = disk;
  TRY_ASSIGN(mapped.upper, OpenDirectory(disk, "upper"));
  TRY_ASSIGN(mapped.work, OpenDirectory(disk, "work"));
  return mapped;
}

}  // namespace

Result<UniqueFd> MountRoot(int template_root, const std::vector<int>& layers, int disk,
                           int user_namespace, uid_t uid_base, bool by_path) {
  TRY_ASSIGN(Layers mapped, MapLayers(template_root, layers, disk, user_namespace));

  // The overlay remembers who made it and acts on its layers as them. Through the mapped mounts,
  // host root has no name: without this the kernel cannot create work/work and quietly mounts the
  // whole overlay read-only.
  FileUser sandbox_root(uid_base);
  TRY(RaiseEffective());
  ClearVolatileMark(mapped.work.get());
  auto mount = by_path ? MountByPath(mapped) : MountByDescriptor(mapped);
  if (!mount && !by_path && mount.error().sys_errno() == EINVAL) mount = MountByPath(mapped);
  if (!mount) return tl::unexpected(std::move(mount).error());

  struct statvfs state;
  if (fstatvfs(mount->get(), &state)) return FailErrno("looking at the sandbox's root");
  if (state.f_flag & ST_RDONLY)
    return Fail(Code::kInternal, "the kernel mounted the sandbox's root read-only");
  return mount;
}

}  // namespace caisson::engine
