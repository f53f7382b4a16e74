#include "envd/entry.h"

#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kFile;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  return FileType::kUnspecified;
}

std::string_view TypeName(FileType type) {
  switch (type) {
    case FileType::kFile:
      return "FILE_TYPE_FILE";
    case FileType::kDirectory:
      return "FILE_TYPE_DIRECTORY";
    case FileType::kUnspecified:
      break;
  }
  return "";
}

void FollowLink(Entry& entry) {
  entry.is_symlink = true;
  std::unique_ptr<char, void (*)(void*)> real(realpath(entry.path.c_str(), nullptr), free);
  entry.symlink_target = real ? std::string(real.get()) : entry.path;
  struct stat target{};
  if (stat(entry.path.c_str(), &target) != 0) return;
  entry.type = TypeOf(target.st_mode);
  entry.mode = target.st_mode & 0777;
}

}  // namespace

Result<Entry> ReadEntry(const std::string& path, const Accounts& accounts) {
  struct stat st{};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return Fail(Code::kNotFound, "file not found: {}", path);
    return FailErrno("cannot read file info of '{}'", path);
  }
  Entry entry;
  entry.name = BaseName(path);
  entry.path = path;
  entry.size = st.st_size;
  entry.permissions = GoModeString(st.st_mode);
  entry.owner = accounts.UserName(st.st_uid);
  entry.group = accounts.GroupName(st.st_gid);
  entry.modified = st.st_mtim;
  if (S_ISLNK(st.st_mode)) {
    FollowLink(entry);
  } else {
    entry.type = TypeOf(st.st_mode);
    entry.mode = st.st_mode & 0777;
  }
  entry.metadata = ReadMetadata(path);
  return entry;
}

boost::json::object ToJson(const Entry& entry, bool legacy, boost::json::storage_ptr storage) {
  boost::json::object out(std::move(storage));
  out.reserve(legacy ? 3 : 12);
  out["name"] = ToUtf8(entry.name);
  if (entry.type != FileType::kUnspecified) out["type"] = TypeName(entry.type);
  out["path"] = ToUtf8(entry.path);
  if (legacy) return out;
  if (entry.size != 0) out["size"] = std::to_string(entry.size);
  if (entry.mode != 0) out["mode"] = entry.mode;
  out["permissions"] = entry.permissions;
  out["owner"] = entry.owner;
  out["group"] = entry.group;
  out["modifiedTime"] = FormatTimestamp(entry.modified);
  if (entry.is_symlink) {
    out["symlinkTarget"] = ToUtf8(entry.symlink_target);
    out["isSymlink"] = true;
  }
  if (!entry.metadata.empty()) {
    boost::json::object metadata(out.storage());
    for (const auto& [key, value] : entry.metadata) metadata[ToUtf8(key)] = ToUtf8(value);
    out["metadata"] = std::move(metadata);
  }
  return out;
}

std::string GoModeString(mode_t mode) {
  std::string out;
  if (S_ISDIR(mode)) out += 'd';
  if (S_ISLNK(mode)) out += 'L';
  if (S_ISBLK(mode) || S_ISCHR(mode)) out += 'D';
  if (S_ISFIFO(mode)) out += 'p';
  if (S_ISSOCK(mode)) out += 'S';
  if (mode & S_ISUID) out += 'u';
  if (mode & S_ISGID) out += 'g';
  if (S_ISCHR(mode)) out += 'c';
  if (mode & S_ISVTX) out += 't';
  if (out.empty()) out += '-';
  constexpr std::string_view kBits = "rwxrwxrwx";
  for (size_t i = 0; i < kBits.size(); ++i) out += mode & (0400U >> i) ? kBits[i] : '-';
  return out;
}

std::string FormatTimestamp(const timespec& time) {
  tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  long nanos = time.tv_nsec;
  if (nanos == 0) return out + "Z";
  if (nanos % 1'000'000 == 0) return out + fmt::format(".{:03}Z", nanos / 1'000'000);
  if (nanos % 1000 == 0) return out + fmt::format(".{:06}Z", nanos / 1000);
  return out + fmt::format(".{:09}Z", nanos);
}

}  // namespace caisson::envd
