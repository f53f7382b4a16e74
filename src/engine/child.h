// What the first process of a sandbox does between clone3 and execve of envd: it makes itself a
// world of its own and gives up every right it does not need. While the launcher builds the root
// file system, it prepares what needs none.
//
// It talks to the launcher through one stream socket, which becomes envd's descriptor 3:
//   launcher -> child   kConnected: uid maps and network interface are there;
//                       kRootReady with a descriptor, the detached mount of the root;
//                       then the boot data for envd, then end of file
//   child -> launcher   "E" + a sentence, if anything fails; else envd says "R" (or "E...")
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/cgroup.h"
#include "engine/engine.h"
#include "engine/manifest.h"
#include "engine/network.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

namespace caisson::engine {

inline constexpr std::string_view kConnected = "N";
inline constexpr std::string_view kRootReady = "M";
inline constexpr char kReady = 'R';
inline constexpr char kFailed = 'E';

// In the engine's directory, which is the current one until the root is there. The files in it
// belong to host root, whom no sandbox can be: nobody inside can change them even where mounted.
inline constexpr const char* kMountPoint = "mnt";  // these three are empty directories
inline constexpr const char* kProcPoint = "proc";
inline constexpr const char* kSysPoint = "sys";
inline constexpr const char* kEmptyDir = "empty";
inline constexpr const char* kEmptyFile = "nothing";
inline constexpr const char* kEnvdFile = "envd";

// Paths below /proc and /sys that are not for guests. Found once: a mount point must exist.
struct KernelPaths {
  std::vector<std::string> hidden_files;  // read as empty
  std::vector<std::string> hidden_dirs;   // look empty
  std::vector<std::string> read_only;

  static KernelPaths Find();
};

// What a sandbox sees of the engine's directory, by kind; CRIU must be told of each.
inline constexpr const char* kShowsEnvd = "envd";
inline constexpr const char* kShowsCaBundle = "ca_bundle";
inline constexpr const char* kShowsMeminfo = "meminfo";
inline constexpr const char* kShowsBootId = "boot_id";
inline constexpr const char* kShowsNothing = "nothing";
inline constexpr const char* kShowsEmptyDir = "empty";
// Every mount that RunChild() makes of a file of the host. `source` is one of the kinds above.
// `ca_bundle`: it has one (HasCaBundle).
std::vector<HostMount> HostMounts(const KernelPaths& paths, bool nesting, bool ca_bundle);

// How much one sandbox may take of what the kernel counts for all of them together. Found once.
struct MachineShare {
  uint64_t inotify_instances = 0;
  uint64_t inotify_watches = 0;
  uint64_t terminals = 0;

  static Result<MachineShare> Find();
};

// SECURITY: a user namespace begins without a limit of its own, and what it uses counts as the
// engine's user's, like that of every other sandbox. One could take it all, and in its neighbours
// nobody could watch a file any more. For the user namespace of the caller; `proc`: the mount.
Status LimitInotify(const MachineShare& share, const std::string& proc);

// Prepared before clone3, so that the child has little to do and nothing to look for.
struct ChildPlan {
  int boot = -1;
  const CgroupEntry* cgroup = nullptr;
  const SeccompFilter* seccomp = nullptr;
  const KernelPaths* paths = nullptr;
  const MachineShare* share = nullptr;
  Steps* steps = nullptr;
  std::string meminfo;  // the file to be shown as /proc/meminfo
  std::string boot_id;  // the file to be shown as the kernel's boot id
  Limits limits;
  bool nesting = false;
  bool connected = false;  // has eth0; else only its loopback
  InsideAddress address;
};

// Never returns: becomes envd, or reports why not and exits.
[[noreturn]] void RunChild(const ChildPlan& plan);

}  // namespace caisson::engine
