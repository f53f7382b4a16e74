// EntryInfo: what the Filesystem service tells about one file (contract 4.3).
#pragma once

#include <sys/stat.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "base/error.h"
#include "envd/metadata.h"
#include "envd/user.h"

namespace caisson::envd {

enum class FileType { kUnspecified = 0, kFile = 1, kDirectory = 2 };

struct Entry {
  std::string name;
  std::string path;  // as asked for, links unresolved
  // Type and permission bits are those of a link's target; a broken link has neither.
  FileType type = FileType::kUnspecified;
  uint32_t mode = 0;
  int64_t size = 0;
  std::string permissions;  // of the link itself, written as Go does
  std::string owner;
  std::string group;
  timespec modified{};
  bool is_symlink = false;
  std::string symlink_target;  // fully resolved, or the link's own path if that is impossible
  Metadata metadata;
};

// kNotFound when nothing is there.
Result<Entry> ReadEntry(const std::string& path, const Accounts& accounts);

// proto3 JSON. `legacy` clients fail on unknown fields and get name, type and path only.
boost::json::object ToJson(const Entry& entry, bool legacy, boost::json::storage_ptr storage = {});

// Go's text for a mode: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx", "urwxr-xr-x".
std::string GoModeString(mode_t mode);
// RFC 3339 with 0, 3, 6 or 9 fractional digits: the only forms protobuf's JSON parsers accept.
std::string FormatTimestamp(const timespec& time);

}  // namespace caisson::envd
