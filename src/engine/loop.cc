#include "engine/loop.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/mount.h"

namespace caisson::engine {
namespace {

// Other launchers (and other programs) take free loop devices too.
constexpr int kAttempts = 100;

}  // namespace

std::string LoopPath(int number) { return fmt::format("/dev/loop{}", number); }

Result<Loop> AttachLoop(int image, const std::string& label, bool read_only) {
  UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return FailErrno("opening /dev/loop-control");
  loop_config config{};
  config.fd = static_cast<uint32_t>(image);
  config.block_size = 4096;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (read_only ? LO_FLAGS_READ_ONLY : 0);
  label.copy(reinterpret_cast<char*>(config.info.lo_file_name), LO_NAME_SIZE - 1);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return FailErrno("finding a free loop device");
    UniqueFd fd(open(LoopPath(number).c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    if (!fd) {
      if (errno == ENOENT || errno == ENXIO) continue;  // being made, or being removed
      return FailErrno("opening {}", LoopPath(number));
    }
    if (ioctl(fd.get(), LOOP_CONFIGURE, &config) == 0) return Loop{number, std::move(fd)};
    if (errno != EBUSY) return FailErrno("configuring {}", LoopPath(number));
  }
  return Fail(Code::kUnavailable, "no loop device became free in {} attempts", kAttempts);
}

bool LoopHolds(int number, const std::string& label) {
  UniqueFd fd(open(LoopPath(number).c_str(), O_RDONLY | O_CLOEXEC));
  loop_info64 info{};
  if (!fd || ioctl(fd.get(), LOOP_GET_STATUS64, &info)) return false;
  return label.substr(0, LO_NAME_SIZE - 1) == reinterpret_cast<const char*>(info.lo_file_name);
}

Result<int> LoopOf(int fd) {
  struct stat status;
  if (fstat(fd, &status)) return FailErrno("looking at a disk");
  if (major(status.st_dev) != LOOP_MAJOR) return Fail(Code::kInternal, "a disk is no loop device");
  return static_cast<int>(minor(status.st_dev));
}

Result<int64_t> LoopWritten(int number) {
  constexpr size_t kSectorsWritten = 6;
  constexpr int64_t kSectorBytes = 512;
  TRY_ASSIGN(std::string text,
             ReadFile(fmt::format("/sys/dev/block/{}:{}/stat", LOOP_MAJOR, number)));
  size_t column = 0;
  for (std::string_view word : Split(Trim(text), ' ')) {
    if (word.empty() || column++ != kSectorsWritten) continue;
    if (auto sectors = ParseInt<int64_t>(word)) return *sectors * kSectorBytes;
  }
  return Fail(Code::kInternal, "the kernel does not tell what was written to {}", LoopPath(number));
}

Status AwaitLoopGone(int number, const std::string& label, std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (number >= 0 && LoopHolds(number, label)) {
    if (std::chrono::steady_clock::now() > deadline)
      return Fail(Code::kDeadlineExceeded, "the disk of {} is still in use", label);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

Result<UniqueFd> MountExt4(int loop, bool read_only) {
  TRY_ASSIGN(FileSystem fs, FileSystem::Open("ext4"));
  TRY(fs.SetString("source", LoopPath(loop)));
  // The kernel would otherwise write all inode tables (160 MB of 10 GB) in the background.
  TRY(fs.SetFlag("noinit_itable"));
  // A sandbox's sync need not wait for the host's disk: what must last is synced when it is saved.
  TRY(fs.SetFlag("nobarrier"));
  if (read_only) TRY(fs.SetFlag("ro"));
  // What programs and devices on it are is decided by the root of the sandbox above.
  return fs.Mount(kOnlyData);
}

}  // namespace caisson::engine
