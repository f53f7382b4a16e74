#include "engine/deleted_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr int kLooksPerGlance = 256;   // at the clock
constexpr size_t kMaxMaps = 16 << 20;  // the kernel's own limit of mappings is below
constexpr std::string_view kDeleted = " (deleted)";

class Counter {
 public:
  Counter(dev_t device, int64_t most, steady_clock::time_point deadline)
      : device_(device), most_(most), deadline_(deadline) {}

  Status Look(pid_t pid) {
    if (steady_clock::now() >= deadline_) return TooMany();
    std::string process = fmt::format("/proc/{}", pid);
    for (const char* link : {"cwd", "root", "exe"}) Add(AT_FDCWD, process + "/" + link);
    TRY(LookAtOpen(process + "/fd"));
    return LookAtMapped(process);
  }
  int64_t bytes() const { return bytes_; }

 private:
  static Status TooMany() {
    return Fail(Code::kOutOfRange, "its processes have too many files open; it runs on");
  }

  Status LookAtOpen(const std::string& path) {
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), closedir);
    while (dir && bytes_ <= most_) {
      dirent* entry = readdir(dir.get());
      if (!entry) break;
      if (++looks_ % kLooksPerGlance == 0 && steady_clock::now() >= deadline_) return TooMany();
      Add(dirfd(dir.get()), entry->d_name);
    }
    return {};
  }

  // What is mapped stays when its descriptor is closed.
  Status LookAtMapped(const std::string& process) {
    auto maps = ReadFile(process + "/maps", kMaxMaps);
    if (!maps) return maps.error().code() == Code::kOutOfRange ? TooMany() : Status();
    for (size_t at = 0; (at = maps->find(" (deleted)\n", at)) != std::string::npos; ++at) {
      size_t line = maps->rfind('\n', at) + 1;  // of the first line: npos + 1
      uint64_t begin = 0, end = 0;
      // Here they are padded to eight digits, in the other directory they are not.
      if (sscanf(maps->c_str() + line, "%lx-%lx", &begin, &end) == 2)
        Add(AT_FDCWD, fmt::format("{}/map_files/{:x}-{:x}", process, begin, end));
    }
    return {};
  }

  // By the text of the link: what lies in a layer below keeps its number of names when it is gone.
  void Add(int dir, const std::string& name) {
    char text[4096];
    ssize_t n = readlinkat(dir, name.c_str(), text, sizeof text);
    struct stat file;
    // Shared memory looks like a deleted file, too, but is none of this file system.
    if (n < 0 || !std::string_view(text, static_cast<size_t>(n)).ends_with(kDeleted) ||
        fstatat(dir, name.c_str(), &file, 0) || file.st_dev != device_)
      return;
    if (seen_.insert(file.st_ino).second) bytes_ += file.st_blocks * 512;
  }

  const dev_t device_;
  const int64_t most_;
  const steady_clock::time_point deadline_;
  int64_t bytes_ = 0;
  int looks_ = 0;
  std::set<ino_t> seen_;  // one file may be open many times
};

}  // namespace

Result<int64_t> CountDeletedBytes(pid_t first, const std::vector<pid_t>& processes, int64_t most,
                                  steady_clock::time_point deadline) {
  struct stat root;
  if (stat(fmt::format("/proc/{}/root", first).c_str(), &root))
    return FailErrno("looking at the root of process {}", first);
  Counter counter(root.st_dev, most, deadline);
  for (pid_t pid : processes) {
    TRY(counter.Look(pid));
    if (counter.bytes() > most) break;
  }
  return counter.bytes();
}

int64_t CountCopiedBytes(int images) {
  int64_t bytes = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/self/fd/{}", images), ec)) {
    std::string name = entry.path().filename().string();
    struct stat info;
    if (name.starts_with(kDeletedFile) &&
        fstatat(images, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
      bytes += info.st_blocks * 512;
  }
  return bytes;
}

}  // namespace caisson::engine
