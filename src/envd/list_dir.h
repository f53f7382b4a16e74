// Listing a directory tree for Filesystem.ListDir.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "envd/user.h"

namespace caisson::envd {

struct ListOptions {
  std::string path;
  uint32_t depth = 1;
  bool legacy = false;
  size_t max_entries = 100'000;
};

// {"entries":[EntryInfo]}: each directory before its content, names in byte order, links not
// descended into, paths with the requested prefix. kNotFound, kInvalidArgument (not a directory),
// kFailedPrecondition (links in a circle), kResourceExhausted (too many entries). Blocks.
Result<boost::json::object> ListDirectory(const ListOptions& options, const Accounts& accounts);

}  // namespace caisson::envd
