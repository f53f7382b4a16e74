#include "cli/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/seccomp.h"

namespace caisson::cli {
namespace {

// glibc of Debian 12 knows these calls only partly, and <sys/mount.h> collides with
// <linux/mount.h>.
int OpenTree(const char* path) {
  return static_cast<int>(
      syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}
int MoveMount(int tree, const char* to) {
  return static_cast<int>(syscall(SYS_move_mount, tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH));
}
int SetMountAttributes(const char* path, const mount_attr& attributes) {
  return static_cast<int>(
      syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof(attributes)));
}
constexpr uint64_t kPrivate = 1 << 18;  // MS_PRIVATE

// SECURITY: whoever takes over the server can change nothing but its database.
Status ConfineFiles(const std::string& writable_dir) {
  bool writes = !writable_dir.empty();
  if (writes && mkdir(kWritableDir, 0755) && errno != EEXIST)
    return FailErrno("creating {}", kWritableDir);
  if (unshare(CLONE_NEWNS)) return FailErrno("making a private view of the file system");
  // Private first: nothing below may show up in the host's own mount table.
  if (SetMountAttributes("/", {.propagation = kPrivate}))
    return FailErrno("making the view of the file system private");
  UniqueFd writable(writes ? OpenTree(writable_dir.c_str()) : -1);
  if (writes && !writable) return FailErrno("opening {}", writable_dir);
  if (SetMountAttributes("/", {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID}))
    return FailErrno("making the file system read-only");
  if (writes && MoveMount(writable.get(), kWritableDir))
    return FailErrno("mounting {}", writable_dir);
  return {};
}

Status DropCapabilities() {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) && errno != EINVAL)
      return FailErrno("dropping capability {}", capability);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return {};
}

Status BecomeUser(const ServerUser& user) {
  if (setgroups(0, nullptr)) return FailErrno("leaving root's groups");
  if (setresgid(user.gid, user.gid, user.gid)) return FailErrno("becoming group {}", user.gid);
  if (setresuid(user.uid, user.uid, user.uid)) return FailErrno("becoming user {}", user.name);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data())) return FailErrno("dropping capabilities");
  // Libraries look there for settings of theirs (libpq for certificates); root's are out of reach.
  setenv("HOME", user.home.c_str(), 1);
  // Going back must be impossible; if it is not, something is very wrong.
  if (setuid(0) == 0) return Fail(Code::kInternal, "root could not be given up");
  return {};
}

}  // namespace

Result<ServerUser> FindServerUser(const std::string& name) {
  if (name == "auto") {
    auto own = FindServerUser("caisson");
    return own ? own : FindServerUser("nobody");
  }
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(64 << 10);
  int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (!found)
    return Fail(
        Code::kNotFound,
        "there is no user '{}' on this machine{}: create it, or choose another one with the "
        "setting `user`",
        name, error ? fmt::format(" ({})", strerror(error)) : "");
  if (found->pw_uid == 0)
    return Fail(Code::kInvalidArgument,
                "the setting `user` must not be root: the HTTP server runs without privileges");
  return ServerUser{name, found->pw_uid, found->pw_gid, found->pw_dir};
}

Status DropPrivileges(const ServerUser& user, const std::string& writable_dir) {
  TRY(ConfineFiles(writable_dir));
  TRY(DropCapabilities());
  TRY(BecomeUser(user));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return FailErrno("forbidding new privileges");
  // SECURITY: other processes of the same user must not read our memory, which holds keys.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) return FailErrno("forbidding to be traced");
  // SECURITY: whoever takes over the server gets no more of the kernel than a sandbox has.
  TRY_ASSIGN(auto filter, engine::SeccompFilter::Compile(/*nesting=*/false));
  return filter.Install();
}

void RaiseFileLimit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted) return;
  uint64_t most = limit.rlim_max;
  if (auto text = ReadFile("/proc/sys/fs/nr_open", 64))
    most = ParseInt<uint64_t>(Trim(*text)).value_or(most);
  limit.rlim_cur = std::min(wanted, most);
  limit.rlim_max = std::max(limit.rlim_cur, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  limit.rlim_cur = limit.rlim_max = std::min<uint64_t>(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace caisson::cli
