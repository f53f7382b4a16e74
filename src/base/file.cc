#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "base/id.h"

namespace caisson {

Result<std::string> ReadFile(const std::string& path, size_t max_size) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("opening {}", path);
  std::string data;
  size_t have = 0;
  for (;;) {
    if (data.size() - have < 4096) data.resize(data.size() + 16384);
    ssize_t n = read(fd.get(), data.data() + have, data.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      return FailErrno("reading {}", path);
    }
    if (n == 0) break;
    have += static_cast<size_t>(n);
    if (have > max_size) return Fail(Code::kOutOfRange, "{} is longer than {}", path, max_size);
  }
  data.resize(have);
  return data;
}

Status WriteKernelFile(const std::string& path, std::string_view data) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return FailErrno("opening {}", path);
  ssize_t n = write(fd.get(), data.data(), data.size());
  if (n < 0 || static_cast<size_t>(n) != data.size())
    return FailErrno("writing '{}' to {}", data, path);
  return {};
}

namespace {

Status WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    ssize_t n = write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return FailErrno("writing {}", path);
    }
    data.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Status WriteFileAtomic(const std::string& path, std::string_view data, unsigned mode) {
  std::string temporary = path + "." + RandomHex(4) + ".tmp";
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return FailErrno("creating {}", temporary);
  Status written = WriteAll(fd.get(), data, path);
  if (written &&
      (fchmod(fd.get(), mode) || fsync(fd.get()) || rename(temporary.c_str(), path.c_str())))
    written = FailErrno("replacing {}", path);
  if (!written) unlink(temporary.c_str());
  return written;
}

namespace {

// Depth is bounded by PATH-independent recursion over directory descriptors: each level holds one,
// so a hostile tree deeper than the descriptor limit fails cleanly instead of overflowing a path.
Status RemoveAt(int parent, const char* name, dev_t device) {
  struct stat info;
  if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW))
    return errno == ENOENT ? Status() : FailErrno("stat {}", name);
  if (!S_ISDIR(info.st_mode)) {
    if (unlinkat(parent, name, 0) && errno != ENOENT) return FailErrno("removing {}", name);
    return {};
  }
  if (info.st_dev != device)
    return Fail(Code::kFailedPrecondition, "{} is on another file system", name);
  UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Status() : FailErrno("opening {}", name);
  int raw = fd.get();
  std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd.Release()), closedir);
  if (!dir) return FailErrno("reading {}", name);
  while (dirent* entry = readdir(dir.get())) {
    std::string_view child = entry->d_name;
    if (child == "." || child == "..") continue;
    TRY(RemoveAt(raw, entry->d_name, device));
  }
  if (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)
    return FailErrno("removing directory {}", name);
  return {};
}

}  // namespace

Status RemoveTree(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info)) return errno == ENOENT ? Status() : FailErrno("stat {}", path);
  return RemoveAt(AT_FDCWD, path.c_str(), info.st_dev);
}

}  // namespace caisson
