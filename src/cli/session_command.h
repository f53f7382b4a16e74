// `caisson session`: conversations, by the API of a server.
#pragma once

#include "cli/session_action.h"

namespace caisson::cli {

// The exit status; what went wrong is on standard error.
int RunSessionCommand(const SessionCommand& command);

}  // namespace caisson::cli
