#include "cli/version.h"

namespace caisson::cli {

std::string VersionText() {
  std::string commit = CAISSON_COMMIT;
  return fmt::format("caisson {} ({}clang {})", CAISSON_VERSION,
                     commit.empty() ? "" : fmt::format("commit {}, ", commit), __clang_version__);
}

}  // namespace caisson::cli
