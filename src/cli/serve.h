// caisson serve: from a root process to a running, unprivileged server, and back down.
#pragma once

#include "base/config.h"

namespace caisson::cli {

// Runs until a signal ends it. Returns the exit status of the program: 0 after SIGTERM or SIGINT.
int Serve(Config config);

}  // namespace caisson::cli
