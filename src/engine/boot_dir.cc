#include "engine/boot_dir.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>

namespace caisson::engine {
namespace {

constexpr const char* kMemoryRoot = "/dev/shm/caisson";

std::string InMemory(const std::string& name) { return fmt::format("{}/{}", kMemoryRoot, name); }

bool IsInMemory(const std::string& path) {
  struct statfs info;
  return statfs(path.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// SECURITY: everybody may create names in /dev/shm; only a directory of our own user that nobody
// else can write to is used.
bool MakeOwnDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) && errno != EEXIST) return false;
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         !(info.st_mode & 077);
}

}  // namespace

Status MakeBootDirectory(const std::string& path, const std::string& name) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  unlink(path.c_str());  // a link from before the last boot
  std::string parent = std::filesystem::path(path).parent_path().string();
  std::string target = InMemory(name);
  bool link = !IsInMemory(parent.empty() ? "." : parent) && IsInMemory("/dev/shm") &&
              MakeOwnDirectory(kMemoryRoot) && MakeOwnDirectory(target);
  if (link ? symlink(target.c_str(), path.c_str()) : mkdir(path.c_str(), 0700)) {
    // Another server of this machine may have been faster.
    if (errno != EEXIST) return FailErrno("creating {}", path);
  }
  return {};
}

void RemoveBootDirectory(const std::string& path, const std::string& name) {
  if (rmdir(InMemory(name).c_str()) == 0) unlink(path.c_str());
  rmdir(path.c_str());
}

}  // namespace caisson::engine
