// Snapshots as clients ask for them and name them.
#pragma once

#include <string>

#include "store/store.h"

namespace caisson::sandbox {

struct SnapshotOptions {
  std::string name;    // taken from the snapshot that has it, if there is one
  bool memory = true;  // false: only its files
  bool once = false;   // if one has the name already, that is the answer, and nothing is copied
};

struct SnapshotFilter {
  std::string key_id;
  std::string sandbox_id;  // "" = any
  std::string name;        // with or without a tag; "" = any
};

// What clients call a snapshot: "name:tag", or "id:default" if it has no name.
std::string SnapshotName(const store::SnapshotRow& row);

}  // namespace caisson::sandbox
