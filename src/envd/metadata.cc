#include "envd/metadata.h"

#include <sys/xattr.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr std::string_view kHeaderPrefix = "x-metadata-";
constexpr std::string_view kAttributePrefix = "user.e2b.";
constexpr size_t kMaxKey = 246;  // XATTR_NAME_MAX less the prefix
constexpr size_t kMaxTotal = 4096;
constexpr size_t kMaxList = 64 << 10;  // XATTR_LIST_MAX
constexpr size_t kMaxValue = 64 << 10;

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

// The keys among a NUL-separated list of attribute names.
std::vector<std::string> KeysOf(std::string_view list) {
  std::vector<std::string> keys;
  for (std::string_view name : Split(list, '\0')) {
    if (name.starts_with(kAttributePrefix)) keys.emplace_back(name.substr(kAttributePrefix.size()));
  }
  return keys;
}

}  // namespace

Result<Metadata> MetadataFromHeaders(const http::Headers& headers) {
  Metadata metadata;
  size_t total = 0;
  for (const auto& [name, value] : headers) {
    std::string lower = ToLower(name);
    if (!lower.starts_with(kHeaderPrefix)) continue;
    std::string key = lower.substr(kHeaderPrefix.size());
    if (key.empty() || metadata.contains(key)) continue;
    if (!IsPrintable(key) || !IsPrintable(value))
      return Fail(Code::kInvalidArgument,
                  "metadata '{}' must consist of printable ASCII characters", key);
    if (key.size() > kMaxKey)
      return Fail(Code::kInvalidArgument, "a metadata key is longer than {} bytes", kMaxKey);
    total += kAttributePrefix.size() + key.size() + value.size();
    metadata[key] = value;
  }
  if (total > kMaxTotal)
    return Fail(Code::kInvalidArgument, "metadata exceeds {} bytes", kMaxTotal);
  return metadata;
}

Metadata ReadMetadata(const std::string& path) {
  Metadata metadata;
  // Nearly every file has no attributes at all: ask for the size first, it needs no buffer.
  ssize_t size = llistxattr(path.c_str(), nullptr, 0);
  if (size <= 0) return metadata;
  std::string list(std::min<size_t>(static_cast<size_t>(size) + 256, kMaxList), '\0');
  size = llistxattr(path.c_str(), list.data(), list.size());
  if (size <= 0) return metadata;
  list.resize(static_cast<size_t>(size));
  for (const std::string& key : KeysOf(list)) {
    std::string value(kMaxTotal, '\0');
    std::string name = std::string(kAttributePrefix) + key;
    ssize_t length = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (length < 0 && errno == ERANGE) {
      value.resize(kMaxValue);
      length = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    }
    if (length < 0) continue;
    value.resize(static_cast<size_t>(length));
    metadata[key] = std::move(value);
  }
  return metadata;
}

Result<Metadata> ReplaceMetadata(int fd, const Metadata& metadata) {
  std::string list(kMaxList, '\0');
  ssize_t size = flistxattr(fd, nullptr, 0);
  if (size > 0) size = flistxattr(fd, list.data(), list.size());
  if (size < 0) {
    if (errno == ENOTSUP) return Metadata();
    return FailErrno("cannot read the file's metadata");
  }
  list.resize(static_cast<size_t>(size));
  for (const std::string& key : KeysOf(list)) {
    if (metadata.contains(key)) continue;
    if (fremovexattr(fd, (std::string(kAttributePrefix) + key).c_str()) != 0 && errno != ENODATA)
      return FailErrno("cannot clear the file's metadata");
  }
  for (const auto& [key, value] : metadata) {
    std::string name = std::string(kAttributePrefix) + key;
    if (fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) continue;
    if (errno == ENOTSUP) return Metadata();
    return FailErrno("cannot store the file's metadata");
  }
  return metadata;
}

}  // namespace caisson::envd
