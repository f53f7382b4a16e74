// CRIU, the program that writes a process tree to files and makes it run again, as this engine uses
// it: the distribution's own when it works on this kernel, else a bundle that ./run unpacked beside
// the program and that brings its own libraries and loader.
//
// It is driven through its RPC socket (`criu swrk`): no shell, no scripts, and the restore stops
// for us where the new network namespace must be set up. All calls block; made from a launcher.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"

namespace caisson::engine {

struct DumpPlan {
  int pid = 0;          // first process of the sandbox; all of it is frozen already
  int images = -1;      // an empty directory, open for reading (not O_PATH)
  std::string freezer;  // absolute path of its cgroup (v2); frozen before and after
  std::vector<std::string> external_mounts;  // mount points inside whose source is the host's
  // Locked (shared) until CRIU ends, which it does by itself, also after the deadline and when this
  // process dies: killed, it could take the processes with it. "": it is killed.
  std::string lock;
  std::vector<std::string> scan;    // directories inside where inotify may watch
  int64_t deleted_bytes = 1 << 30;  // of one deleted file that is still open, at most
};

struct RestorePlan {
  // Returns the directory (see DumpPlan), which must stay open until Restore() returns. Called
  // while CRIU gets ready, which takes longer than unpacking images does.
  std::function<Result<int>()> open_images;
  std::string root;  // where the root file system is mounted, in the caller's mount namespace
  // Mount point inside -> path of its source in the caller's mount namespace.
  std::vector<std::pair<std::string, std::string>> external_mounts;
  int cgroup = -1;  // v2 cgroup that CRIU, and so everything restored, is born in
  // Runs in the process that becomes CRIU, before it is executed: enters v1 cgroups and takes the
  // cgroup namespace. Only system calls.
  std::function<Status()> enter;
  // Called when the namespaces exist and no process runs yet: gives the new network namespace its
  // interfaces; the loopback must be up afterwards. `pid`: the future first process.
  std::function<Status(int pid)> set_up_network;
  // Called when all processes are there with their memory, and none runs yet. May be missing.
  std::function<Status()> finish_memory;
};

class Criu {
 public:
  // Looks for it (config.criu, the machine's cache, PATH) and asks its version. kNotFound tells
  // in a sentence what is missing and how to get it.
  static Result<Criu> Find(const Config& config);

  // Writes memory and state of everything under `pid`; the processes stay frozen. kUnimplemented:
  // CRIU cannot take this tree (traced, nested pid namespace, ...); the message says what it was.
  // Established TCP connections are saved as closed.
  Status Dump(const DumpPlan& plan, Deadline deadline) const;
  // Makes it run again. Returns the host's pid of the first process, a child of this process. On
  // failure nothing runs.
  Result<int> Restore(const RestorePlan& plan, Deadline deadline) const;

  const std::string& version() const { return version_; }

 private:
  Criu() = default;
  Status Ask(Deadline deadline);

  std::vector<std::string> command_;  // program and arguments up to its verb
  std::string version_;
  bool cover_run_ = false;    // /run is no tmpfs, so CRIU cannot keep its notes there
  std::string kernel_facts_;  // the notes
};

// Really saves and continues a process with a listening socket, in namespaces of its own. Some
// 0.2 s; what `caisson doctor` and the engine's start rely on.
Status TryCriu(const Criu& criu, Deadline deadline);

// Rewrites the images, which must be copies, so that they are restored into another range of user
// ids: inside nothing changes. `directory` is open for reading.
Status MoveUserRange(int directory, uint32_t uid_base);
// Takes dead processes out of the images, which must be copies, that the first process had
// inherited and not reaped yet. CRIU makes them below another process again and, if that ends late,
// waits forever for the first one to inherit them. Those that it started itself stay: it wants
// their status.
Status LeaveInheritedDead(int directory);

}  // namespace caisson::engine
