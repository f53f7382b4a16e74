// caisson agent ..., caisson task ..., caisson run ...: the work platform from a terminal.
#pragma once

#include "cli/work_action.h"

namespace caisson::cli {

// Returns the exit status of the program.
int RunWorkCommand(const WorkCommand& command);

}  // namespace caisson::cli
