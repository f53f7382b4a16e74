#include "engine/root.h"

#include <fcntl.h>
#include <sys/fsuid.h>
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

}  // namespace

Result<UniqueFd> MountRoot(int template_root, int disk, int user_namespace, uid_t uid_base) {
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
  TRY_ASSIGN(FileSystem overlay, FileSystem::Open("overlay"));
  TRY(overlay.SetFd("lowerdir+", lower.get()));
  TRY(overlay.SetFd("upperdir", upper.get()));
  TRY(overlay.SetFd("workdir", work.get()));
  // Renaming a directory of the template works, as everywhere else (npm does it).
  TRY(overlay.SetString("redirect_dir", "on"));
  // Never waits for a disk: neither for a guest's sync nor when it is unmounted.
  TRY(overlay.SetFlag("volatile"));
  TRY_ASSIGN(UniqueFd mount, overlay.Mount(0));

  struct statvfs state;
  if (fstatvfs(mount.get(), &state)) return FailErrno("looking at the sandbox's root");
  if (state.f_flag & ST_RDONLY)
    return Fail(Code::kInternal, "the kernel mounted the sandbox's root read-only");
  return mount;
}

}  // namespace caisson::engine
