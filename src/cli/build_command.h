// caisson build ...: builds from a terminal.
#pragma once

#include "cli/build_action.h"

namespace caisson::cli {

// Returns the exit status of the program.
int RunBuildCommand(const BuildCommand& command);

}  // namespace caisson::cli
