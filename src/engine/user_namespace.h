// A user namespace by itself, for mapping the owners of mounts before the sandbox's own exists.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// The text of uid_map and gid_map of a sandbox whose ids begin at `uid_base` on the host.
std::string IdMap(uid_t uid_base);
// Maps ids like a sandbox of this range. No process is in it.
Result<UniqueFd> MakeUserNamespace(uid_t uid_base);

}  // namespace caisson::engine
