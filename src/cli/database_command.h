// `caisson database ...`: the schema of the database and copies of it, for operators.
#pragma once

#include "cli/command_line.h"

namespace caisson::cli {

// Prints and returns the exit status.
int RunDatabaseCommand(const DatabaseCommand& command);

}  // namespace caisson::cli
