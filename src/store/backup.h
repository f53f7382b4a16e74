// A copy of a database that is in use.
#pragma once

#include "store/database.h"

namespace caisson::store {

// Writes one moment of a SQLite database, whoever uses it meanwhile, into a new file of mode 0600
// that is there only once it is whole. kAlreadyExists if there is such a file, kFailedPrecondition
// if it is PostgreSQL, which has a program of its own for this.
Status Backup(Database& database, const std::string& file);

}  // namespace caisson::store
