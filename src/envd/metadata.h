// User metadata of files: extended attributes "user.e2b.<key>", set by X-Metadata-<key> headers.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "http/message.h"

namespace caisson::envd {

using Metadata = std::map<std::string, std::string>;

// The metadata that an upload's headers carry. Keys in lower case, the first value of a repeated
// header counts. kInvalidArgument when a key or value is not printable ASCII, a key is longer than
// 246 bytes, or everything together (with the attribute prefix of each key) exceeds 4096 bytes.
Result<Metadata> MetadataFromHeaders(const http::Headers& headers);

// The metadata of a file itself (links are not followed); empty where attributes are unsupported.
Metadata ReadMetadata(const std::string& path);
// Replaces all metadata of an open file. A file system without attributes is no error: the answer
// is what was stored.
Result<Metadata> ReplaceMetadata(int fd, const Metadata& metadata);

}  // namespace caisson::envd
