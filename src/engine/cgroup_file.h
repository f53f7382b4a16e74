// Reading and writing the small files of cgroup directories, relative to a directory descriptor.
// Internal to cgroup*.cc.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// "<directory>/<file>" on the stack: these paths are built several times per sandbox.
class CgroupPath {
 public:
  CgroupPath(std::string_view directory, std::string_view file);
  const char* c_str() const { return text_; }

 private:
  char text_[192];
};

// One write(2) to an existing file; `plain` also creates it (CgroupLayout::plain_files).
Status WriteCgroupFile(int directory, const char* path, std::string_view value, bool plain);

// The content of a small file, kept on the stack. Longer files are cut.
class CgroupText {
 public:
  static Result<CgroupText> Read(int directory, const char* path);
  // Reads again through an open descriptor.
  Status Refresh(int fd);

  std::string_view text() const { return {buffer_, size_}; }
  // The number in the line "key number".
  std::optional<int64_t> Find(std::string_view key) const;
  // The whole content as a number; "max" is the greatest one.
  std::optional<int64_t> Number() const;

 private:
  char buffer_[8192];
  size_t size_ = 0;
};

}  // namespace caisson::engine
