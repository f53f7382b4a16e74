#include "sandbox/manager.h"

namespace caisson::sandbox {

std::string SnapshotName(const store::SnapshotRow& row) {
  return fmt::format("{}:{}", row.name.empty() ? row.id : row.name, row.tag);
}

}  // namespace caisson::sandbox
