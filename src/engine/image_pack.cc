#include "engine/image_pack.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "base/fd.h"

namespace caisson::engine {
namespace {

// Each file: both lengths, its name, its content.
struct Lengths {
  uint32_t name = 0;
  uint32_t content = 0;
};

}  // namespace

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos && name != "." && name != "..";
}

std::string PackHead(std::string_view name, uint32_t content_bytes) {
  Lengths lengths{static_cast<uint32_t>(name.size()), content_bytes};
  std::string head(reinterpret_cast<const char*>(&lengths), sizeof(lengths));
  return head.append(name);
}

Status PackFile(int directory, const std::string& name, int pack) {
  UniqueFd file(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!file || fstat(file.get(), &info)) return FailErrno("opening {}", name);
  if (info.st_size > std::numeric_limits<uint32_t>::max())
    return Fail(Code::kResourceExhausted, "{} is too large to be packed", name);
  std::string head = PackHead(name, static_cast<uint32_t>(info.st_size));
  if (write(pack, head.data(), head.size()) != static_cast<ssize_t>(head.size()))
    return FailErrno("packing {}", name);
  for (off_t left = info.st_size; left > 0;) {
    ssize_t n = sendfile(pack, file.get(), nullptr, static_cast<size_t>(left));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("packing {}", name);
    if (n == 0) return Fail(Code::kInternal, "{} became shorter while it was packed", name);
    left -= n;
  }
  return {};
}

Result<std::vector<NamedFile>> UnpackFiles(std::string_view pack) {
  std::vector<NamedFile> files;
  while (!pack.empty()) {
    Lengths lengths;
    if (pack.size() < sizeof(lengths)) return Fail(Code::kDataLoss, "a pack of files is cut");
    std::memcpy(&lengths, pack.data(), sizeof(lengths));
    pack.remove_prefix(sizeof(lengths));
    if (pack.size() < size_t{lengths.name} + lengths.content)
      return Fail(Code::kDataLoss, "a pack of files is cut");
    std::string_view name = pack.substr(0, lengths.name);
    if (!IsFileName(name)) return Fail(Code::kDataLoss, "a pack of files has an odd name in it");
    files.emplace_back(name, pack.substr(lengths.name, lengths.content));
    pack.remove_prefix(size_t{lengths.name} + lengths.content);
  }
  return files;
}

}  // namespace caisson::engine
