// Files that CRIU writes and reads: two magic numbers, then messages, each after its size. Internal
// to what changes them before they are restored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

inline constexpr size_t kImageMagicBytes = 8;

// Does not copy: `image` must outlive what is returned. kDataLoss: it breaks off.
Result<std::vector<std::string_view>> ImageMessages(std::string_view image);
void AppendImageMessage(std::string& image, std::string_view message);
// Without a sync, and not at once: only for files that nobody else reads.
Status OverwriteImage(const std::string& path, std::string_view image);

}  // namespace caisson::engine
