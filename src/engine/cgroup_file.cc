#include "engine/cgroup_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

#include "base/text.h"

namespace caisson::engine {

CgroupPath::CgroupPath(std::string_view directory, std::string_view file) {
  *fmt::format_to_n(text_, sizeof text_ - 1, "{}/{}", directory, file).out = 0;
}

Status WriteCgroupFile(int directory, const char* path, std::string_view value, bool plain) {
  int flags = O_WRONLY | O_CLOEXEC | (plain ? O_CREAT | O_TRUNC : 0);
  UniqueFd fd(openat(directory, path, flags, 0600));
  if (!fd) return FailErrno("cannot open {}", path);
  if (write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return FailErrno("cannot write '{}' to {}", value, path);
  return {};
}

Result<CgroupText> CgroupText::Read(int directory, const char* path) {
  UniqueFd fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("cannot open {}", path);
  CgroupText text;
  TRY(text.Refresh(fd.get()));
  return text;
}

Status CgroupText::Refresh(int fd) {
  ssize_t n = pread(fd, buffer_, sizeof buffer_, 0);
  if (n < 0) return FailErrno("cannot read a cgroup file");
  size_ = static_cast<size_t>(n);
  return {};
}

std::optional<int64_t> CgroupText::Find(std::string_view key) const {
  std::string_view rest = text();
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return ParseInt<int64_t>(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

std::optional<int64_t> CgroupText::Number() const {
  std::string_view value = Trim(text());
  if (value == "max") return std::numeric_limits<int64_t>::max();
  return ParseInt<int64_t>(value);
}

}  // namespace caisson::engine
