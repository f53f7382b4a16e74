// fork + exec of one child with everything set: session, descriptors, signals, nice, user, cwd.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/fd.h"
#include "envd/user.h"

namespace caisson::envd {

struct SpawnRequest {
  std::string file;  // path of the program; relative ones start at `cwd`
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::string cwd;
  User user;
  std::vector<gid_t> groups;
  // Become descriptors 0, 1 and 2. A terminal is given three times.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool controlling_terminal = false;  // descriptor 0 becomes the controlling terminal
};

struct Spawned {
  pid_t pid = 0;
  // Ends without a byte when the program runs; otherwise gives the errno of what failed.
  UniqueFd status;
};

// Forks. The caller must reap the pid, whatever the status says. kResourceExhausted when there are
// too many processes or descriptors.
Result<Spawned> Fork(const SpawnRequest& request);

// Waits for the program to run. kInvalidArgument when it cannot be executed; kDeadlineExceeded when
// that is not known after `timeout` (a child can be stopped by others before it gets to execve).
Task<Status> WaitForExec(UniqueFd status, std::string file, std::chrono::milliseconds timeout);

// The program that `name` means: itself if it has a slash, else the first executable in `path`.
Result<std::string> FindProgram(const std::string& name, std::string_view path);

// Called once by main: from now on children get the soft limit of descriptors that envd was started
// with, while envd itself uses the hard one.
void RaiseDescriptorLimit();

}  // namespace caisson::envd
