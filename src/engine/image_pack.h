// The many small files that CRIU writes, in one: forcing one file to the disk takes as long as each
// of forty. How many there are, and how large, is the guest's choice: nothing here is held in
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

// SECURITY: names from a file become parts of paths that root opens: no directory, at most 255
// bytes.
bool IsFileName(std::string_view name);

// What stands before the content of a file in a pack.
std::string PackHead(std::string_view name, uint32_t content_bytes);
// Appends a file of the directory to the open pack.
Status PackFile(int directory, const std::string& name, int pack);

using NamedFile = std::pair<std::string_view, std::string_view>;  // name and content, in the pack
// kDataLoss if it is no such pack, or a name in it is not a plain one.
Result<std::vector<NamedFile>> UnpackFiles(std::string_view pack);

}  // namespace caisson::engine
