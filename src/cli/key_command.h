// `caisson key ...`: API keys, straight in the database.
#pragma once

#include "cli/command_line.h"

namespace caisson::cli {

// Prints and returns the exit status.
int RunKeyCommand(const KeyCommand& command);

}  // namespace caisson::cli
