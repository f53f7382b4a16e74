// What the first process of a sandbox does between clone3 and execve of envd: it takes the mounts
// that the launcher hands it, makes them its world, and gives up every right it does not need.
//
// It talks to the launcher through one stream socket, which becomes envd's descriptor 3:
//   launcher -> child   one byte with four descriptors (root, envd, meminfo, an empty directory),
//                       when the maps are written; then the boot data for envd, then end of file
//   child -> launcher   "E" + a sentence, if anything fails; else envd says "R" (or "E...")
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/cgroup.h"
#include "engine/engine.h"
#include "engine/network.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

namespace caisson::engine {

inline constexpr const char* kMountPoint = "mnt";  // an empty directory of the engine
inline constexpr char kReady = 'R';
inline constexpr char kFailed = 'E';

// Paths below /proc and /sys that are not for guests. Found once: a mount point must exist.
struct KernelPaths {
  std::vector<std::string> hidden_files;  // read as empty
  std::vector<std::string> hidden_dirs;   // look empty
  std::vector<std::string> read_only;

  static KernelPaths Find();
};

// Prepared before clone3, so that the child has little to do and nothing to look for.
struct ChildPlan {
  int boot = -1;
  const CgroupEntry* cgroup = nullptr;
  const SeccompFilter* seccomp = nullptr;
  const KernelPaths* paths = nullptr;
  Steps* steps = nullptr;
  Limits limits;
  bool nesting = false;
  bool connected = false;  // has eth0; else only its loopback
  InsideAddress address;
};

// Never returns: becomes envd, or reports why not and exits.
[[noreturn]] void RunChild(const ChildPlan& plan);

}  // namespace caisson::engine
