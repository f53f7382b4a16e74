// Which Caisson this is.
#pragma once

#include <string>

namespace caisson::cli {

// "caisson 0.1.0 (commit 1a2b3c4d, clang 19.1.7)"
std::string VersionText();

}  // namespace caisson::cli
