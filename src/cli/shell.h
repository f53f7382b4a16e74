// The terminal of this process at a shell of a sandbox.
#pragma once

#include "base/async.h"
#include "cli/api_client.h"
#include "cli/command_line.h"

namespace caisson::cli {

// The shell's exit status; 128 + N if signal N ended it, or us. However it ends, the terminal is as
// it was before, and the shell does not go on without us. kFailedPrecondition: standard input is no
// terminal.
Task<Result<int>> Shell(ApiClient& client, ShellInSandbox shell);

}  // namespace caisson::cli
