// The last lines of this process's log that name a sandbox, in bounded memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson {

// How many are kept, of all sandboxes together.
inline constexpr size_t kLogRingLines = 4096;

// Those whose field "sandbox" is this one, as JSON, oldest first.
std::vector<std::string> RecentLog(std::string_view sandbox);

}  // namespace caisson
