// Loop devices: an image file as a block device, released by the kernel with its last user.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

struct Loop {
  int number = -1;
  UniqueFd fd;  // keeps it until it is mounted
};

// Binds `image` to a free device. `label`: a name by which it is recognised later.
Result<Loop> AttachLoop(int image, const std::string& label, bool read_only = false);
std::string LoopPath(int number);
// Whether this device has that label.
bool LoopHolds(int number, const std::string& label);
// The device of the file system that this descriptor is in.
Result<int> LoopOf(int fd);
// Bytes that were written to it; only differences mean something.
Result<int64_t> LoopWritten(int number);
// Waits until the kernel has released it; kDeadlineExceeded.
Status AwaitLoopGone(int number, const std::string& label, std::chrono::milliseconds timeout);
// The ext4 file system on it, detached. Mounting a device twice gives the same file system.
Result<UniqueFd> MountExt4(int loop, bool read_only = false);

}  // namespace caisson::engine
