// The many small files that CRIU writes, in one: forcing one file to the disk takes as long as each
// of forty.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

using NamedFile = std::pair<std::string, std::string>;  // name and content

// SECURITY: names from a file become parts of paths that root opens: no directory, at most 255
// bytes.
bool IsFileName(std::string_view name);

std::string PackFiles(const std::vector<NamedFile>& files);
// kDataLoss if it is no such pack, or a name in it is not a plain one.
Result<std::vector<NamedFile>> UnpackFiles(std::string_view pack);

}  // namespace caisson::engine
