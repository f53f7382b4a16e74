// Processes by descriptor: unlike a number, a pidfd can never come to mean another process.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// kNotFound if there is no such process.
Result<UniqueFd> OpenProcess(int pid);
// A process that has ended is no error.
void SendSignal(int pidfd, int signal);
// False if it still runs when `timeout` has passed.
bool WaitForExit(int pidfd, std::chrono::milliseconds timeout);
// The wait(2) status of a process that ended; nothing if it runs, or the kernel (before 6.15) does
// not keep it for those who are not its parent.
std::optional<int> ExitStatus(int pidfd);
// "exit code 1", "signal 9".
std::string DescribeExit(int status);

}  // namespace caisson::engine
