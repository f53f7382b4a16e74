#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// A file, read as if it were in memory.
class MappedFile {
 public:
  static Result<MappedFile> Open(int dir, const std::string& name) {
    UniqueFd fd(openat(dir, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info;
    if (!fd || fstat(fd.get(), &info)) return FailErrno("opening {}", name);
    MappedFile file;
    if (info.st_size == 0) return file;
    file.size_ = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) return FailErrno("reading {}", name);
    file.data_ = static_cast<char*>(data);
    return file;
  }
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (data_) munmap(data_, size_);
  }
  std::string_view content() const { return {data_, data_ ? size_ : 0}; }
  // What was read stays in the kernel's cache only.
  void LetGo() const {
    if (data_) madvise(data_, size_, MADV_DONTNEED);
  }

 private:
  MappedFile() = default;
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace caisson::engine
