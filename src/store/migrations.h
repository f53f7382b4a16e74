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

// A step as a database has it; without a time it is not applied.
struct SchemaStep {
  int64_t version = 0;
  std::string name;
  std::optional<Time> applied_at;
};
// All that this program knows, and those of newer programs that are applied.
Result<std::vector<SchemaStep>> ListSchema(Database& database);

// The version of the database's schema, 0 for an empty one.
Result<int64_t> SchemaVersion(Database& database);

// Brings the schema up (or down) to `version`, each step in its own transaction, which looks first
// what is there: of several programs that start at once each step is done by one. A database whose
// schema is newer than the newest step is kFailedPrecondition, untouched.
Status Migrate(Database& database, int64_t version);
// Up to the newest.
Status Migrate(Database& database);

}  // namespace caisson::store
