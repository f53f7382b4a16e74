// Sparse files, piece by piece.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"

namespace caisson::engine {

// Calls `fn(offset, size)` for every piece of a sparse file that has data.
template <class Fn>
Status ForEachPiece(int fd, Fn fn) {
  for (off_t data = 0; (data = lseek(fd, data, SEEK_DATA)) >= 0;) {
    off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return FailErrno("reading a disk image");
    TRY(fn(data, hole - data));
    data = hole;
  }
  return errno == ENXIO ? Status() : FailErrno("reading a disk image");
}

// copy_file_range shares the blocks where the host's file system can.
inline Status CopyPiece(int from, int to, off_t offset, off_t size) {
  off_t in = offset, out = offset, end = offset + size;
  while (in < end) {
    ssize_t n = copy_file_range(from, &in, to, &out, static_cast<size_t>(end - in), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno("copying a disk image");
  }
  return {};
}

}  // namespace caisson::engine
