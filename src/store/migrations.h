// The schema, as numbered steps. A step that was released is never edited; a change is a new step.
#pragma once

#include <span>

#include "store/database.h"

namespace caisson::store {

struct Migration {
  int64_t version;
  const char* name;
  const char* up;
  const char* down;
};

// In order; versions are 1, 2, 3 ...
std::span<const Migration> Migrations();

// The version of the file's schema, 0 for an empty one.
Result<int64_t> SchemaVersion(Database& database);

// Brings the schema up (or down) to `version`, each step in its own transaction. A file whose
// schema is newer than the newest step is kFailedPrecondition, untouched.
Status Migrate(Database& database, int64_t version);
// Up to the newest.
Status Migrate(Database& database);

}  // namespace caisson::store
