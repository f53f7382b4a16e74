// `caisson key ...`, `caisson user ...`, `caisson github-token ...`, `caisson login`: users, their
// keys and tokens, through the API.
#pragma once

#include "cli/command_line.h"

namespace caisson::cli {

// Prints and returns the exit status.
int RunAccountCommand(const AccountCommand& command);

}  // namespace caisson::cli
