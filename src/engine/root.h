// The root file system of a sandbox: an overlay of the template (read-only) and the sandbox's disk.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// The detached overlay. `template_root`: the template's directory; `layers`: detached mounts of
// disks of others with an upper/, bottom first; `disk`: a detached mount with upper/ and work/ (its
// owners get mapped for good); `user_namespace`: maps ids like the sandbox's, whose root is host
// uid `uid_base`. On disk everything keeps its plain owners (0 is root), in every template and
// every sandbox alike.
//
// Kernels before 6.13 know layers by path only: then, or if `by_path` asks for it, the layers are
// attached for a moment in the current directory. The caller's mount namespace must be private.
Result<UniqueFd> MountRoot(int template_root, const std::vector<int>& layers, int disk,
                           int user_namespace, uid_t uid_base, bool by_path);

}  // namespace caisson::engine
