// Running a command in a sandbox as if it ran here: output, input, signals, exit status.
#pragma once

#include "base/async.h"
#include "cli/api_client.h"
#include "cli/command_line.h"

namespace caisson::cli {

// The status for failures of exec itself, so that they are not taken for the command's.
inline constexpr int kExecFailed = 125;

// All of it, unless nobody reads it any more.
void WriteAll(int fd, std::string_view data);

// The command's exit status; 128 + N if signal N ended it.
Task<Result<int>> Exec(ApiClient& client, ExecInSandbox exec);

}  // namespace caisson::cli
