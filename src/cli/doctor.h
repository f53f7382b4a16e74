// caisson doctor: the engine's findings, for people.
#pragma once

#include "cli/command_line.h"

namespace caisson::cli {

// 0 if sandboxes can run on this machine, 1 if something is in their way.
int RunDoctor(const DoctorCommand& command);

}  // namespace caisson::cli
