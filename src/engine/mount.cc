#include "engine/mount.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace caisson::engine {

const unsigned kOnlyData = MOUNT_ATTR_NOATIME | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

Result<FileSystem> FileSystem::Open(const char* type) {
  UniqueFd fd(fsopen(type, FSOPEN_CLOEXEC));
  if (!fd) return FailErrno("this kernel cannot mount {}", type);
  return FileSystem(std::move(fd), type);
}

tl::unexpected<Error> FileSystem::Failed(const char* doing) {
  int error = errno;
  // The context's descriptor holds lines like "e overlay: ...", each read is one line.
  std::string said;
  char line[512];
  ssize_t n;
  while (said.size() < 1024 && (n = read(fd_.get(), line, sizeof(line))) > 0) {
    said += said.empty() ? " (" : "; ";
    said.append(line, static_cast<size_t>(n));
    while (!said.empty() && said.back() == '\n') said.pop_back();
  }
  if (!said.empty()) said += ")";
  return tl::unexpected(ErrnoError(fmt::format("mounting {}, {}{}", type_, doing, said), error));
}

Status FileSystem::SetFlag(const char* key) {
  if (fsconfig(fd_.get(), FSCONFIG_SET_FLAG, key, nullptr, 0)) return Failed(key);
  return {};
}

Status FileSystem::SetString(const char* key, const std::string& value) {
  if (fsconfig(fd_.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0)) return Failed(key);
  return {};
}

Status FileSystem::SetFd(const char* key, int fd) {
  if (fsconfig(fd_.get(), FSCONFIG_SET_FD, key, nullptr, fd)) return Failed(key);
  return {};
}

Result<UniqueFd> FileSystem::Mount(unsigned attributes) {
  if (fsconfig(fd_.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0)) return Failed("creating it");
  UniqueFd mount(fsmount(fd_.get(), FSMOUNT_CLOEXEC, attributes));
  if (!mount) return Failed("mounting it");
  return mount;
}

Status TakeMountNamespace() {
  if (unshare(CLONE_NEWNS)) return FailErrno("taking a mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))
    return FailErrno("making the mount namespace private");
  return {};
}

Result<UniqueFd> CloneMount(int dir, const char* path) {
  UniqueFd mount(
      open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*path ? 0 : AT_EMPTY_PATH)));
  if (!mount) return FailErrno("copying the mount of '{}'", path);
  return mount;
}

namespace {

Status SetAttributes(int mount, mount_attr attributes, const char* doing) {
  if (mount_setattr(mount, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)))
    return FailErrno("{}", doing);
  return {};
}

}  // namespace

Status MapOwners(int mount, int user_namespace) {
  return SetAttributes(
      mount, {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = static_cast<uint64_t>(user_namespace)},
      "mapping the owners of a mount");
}

Status MakeReadOnly(int mount) {
  return SetAttributes(mount,
                       {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV},
                       "making a mount read-only");
}

Status Attach(int mount, const char* target) {
  if (move_mount(mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH))
    return FailErrno("attaching a mount at {}", target);
  return {};
}

}  // namespace caisson::engine
