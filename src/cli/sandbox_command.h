// caisson sandbox ...: what a person does with the sandboxes of a server.
#pragma once

#include "cli/command_line.h"

namespace caisson::cli {

// Returns the exit status of the program.
int RunSandboxCommand(const SandboxCommand& command);

}  // namespace caisson::cli
