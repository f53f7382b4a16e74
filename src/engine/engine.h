// The isolation engine: what a sandbox is to the kernel. Knows nothing of HTTP, SQL or E2B.
//
// A Driver is one way to isolate (`namespace` is built in). It runs in the engine process and its
// launchers, which are root; the server process talks to them through engine/client.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"

namespace caisson::engine {

class EventLoop;

struct Limits {
  int64_t cpus = 2;  // whole CPUs of time per second
  int64_t memory_bytes = 1 << 30;
  int64_t disk_bytes = int64_t{10} << 30;
  int64_t pids = 4096;
  int64_t open_files = 65'536;  // per process; less if the host has less, and never more again
};

// What the sandbox may reach; by default the internet. Never private ranges, the host, or other
// sandboxes, whatever is allowed. egress.h says what the rules mean.
struct Egress {
  std::vector<std::string> allow;  // addresses, blocks, host names, "*.host"; wins over `deny`
  std::vector<std::string> deny;   // addresses and blocks
  bool operator==(const Egress&) const = default;
};

struct Spec {
  std::string id;        // [a-z0-9]+, unique
  std::string root_dir;  // the template's read-only root file system
  Limits limits;
  Egress egress;
  // Opaque to the engine: handed to envd on its boot descriptor (at most kMaxBootBytes).
  std::string boot;
  // "" = an empty disk over the template; else its files, and if it has one its memory, are those
  // of this snapshot.
  std::string snapshot;
  // Whose it is, for the engine a word: groups take turns at what is slow.
  std::string group;
};
inline constexpr size_t kMaxBootBytes = 160 << 10;

struct Instance {
  std::string id;
  int pid = 0;  // envd, as the host sees it
  Time created_at;
  // Its processes were continued, not started: envd still has the settings it had when it was
  // saved, and `Spec::boot` was not used.
  bool continued = false;
};

// How a sandbox was put away.
enum class Tier {
  kMemory,  // memory and files on disk: costs no memory, survives a restart of the host
  kFiles,   // files on disk, processes are gone
  kFrozen,  // processes stand still in memory (swapped out where there is swap): no CPU time, but
            // gone with a restart of the host. For what cannot be saved otherwise.
};
std::string_view TierName(Tier tier);
Result<Tier> ParseTier(std::string_view name);

// A paused sandbox or a snapshot, as it lies on disk.
struct Saved {
  std::string id;
  Tier tier = Tier::kMemory;
  std::string why_frozen;  // a sentence, for kFrozen
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;  // allocated, without what it shares with others
  Time at;
};

struct Usage {
  Time at;
  int64_t cpu_ns = 0;             // since the start
  int64_t memory_used_bytes = 0;  // without page cache
  int64_t memory_cache_bytes = 0;
  int64_t memory_limit_bytes = 0;
  int64_t disk_used_bytes = 0;
  int64_t disk_total_bytes = 0;
  int64_t pids = 0;
  int64_t pids_refused = 0;  // processes that were not started for want of room, since the start
  int64_t oom_kills = 0;
};

// Why a sandbox is no more, when nobody asked for it.
enum class ExitReason { kEnvdExited, kEnvdKilled, kOutOfMemory, kUnknown };
std::string_view ExitReasonName(ExitReason reason);

using Deadline = std::chrono::steady_clock::time_point;

struct Capabilities {
  // Memory can be saved: pause with kMemory, snapshots that continue. Else kFrozen and files only.
  bool memory = false;
  std::string why_no_memory;  // a sentence
  bool network = false;
  int64_t open_files = 0;  // per process: the most this host lets anybody have
};

// A living sandbox as the engine process holds it.
struct Sandbox {
  Instance instance;
  UniqueFd process;        // pidfd of envd: becomes readable when the sandbox has ended
  UniqueFd network;        // its network namespace
  UniqueFd disk;           // its disk, for measuring
  uint32_t address = 0;    // where its packets come from, host byte order; 0 = it has no network
  Egress egress;           // what it may reach
  std::string why_frozen;  // paused, in memory (Tier::kFrozen); "" = it runs
  bool unsettled = false;  // Driver::Settle() has to be asked again
};

// Something a sandbox tried to reach and may not.
struct Blocked {
  std::string id;           // of the sandbox
  std::string destination;  // an address, or a host name that was not resolved
  int port = 0;             // 0 = none (a name, ICMP)
  std::string protocol;     // "tcp", "udp", "icmp", "dns", or a number
  // The process inside, if it could still be found.
  int pid = 0;          // as the sandbox sees it
  std::string command;  // its name
  int64_t more = 0;     // so many others were not reported, because they were too many
};

// One way to isolate. All calls block. Create and Destroy are the slow ones: they run in launcher
// processes, one at a time each. The others take microseconds and run in the engine's main loop.
// A driver keeps no sandbox in memory: what must survive a crash of the engine is on disk.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;

  // Once, in the engine's main process, before anything else.
  virtual Status Prepare() = 0;
  // A driver for a launcher process, made there right after the fork; it shares no descriptor.
  virtual Result<std::unique_ptr<Driver>> ForLauncher() const = 0;
  // Sandboxes of an earlier engine process that still live; what is dead or half-made is destroyed.
  virtual std::vector<Sandbox> Recover() = 0;
  // At the end, when no sandbox lives: takes back what Prepare() did to the machine.
  virtual void CleanUp() = 0;

  // Builds a sandbox and returns when envd says it is ready. On any failure nothing is left.
  // `abort`: a descriptor that becomes readable or hangs up when nobody waits any more; -1 = none.
  virtual Result<Sandbox> Create(const Spec& spec, Deadline deadline, int abort) = 0;
  // Kills everything inside and removes every trace; what is saved of it stays if `keep_saved`.
  // Unknown ids succeed.
  virtual Status Destroy(const std::string& id, bool keep_saved, Deadline deadline) = 0;

  // Nothing inside runs from now on, and without `keep_disk` nothing is written to its disk any
  // more; Destroy() is still to be called.
  virtual void Kill(const Sandbox& sandbox, bool keep_disk) = 0;
  // `count` unconnected TCP sockets (IPv6, dual-stack) living in the sandbox's network: connect()
  // to [::ffff:127.0.0.1]:port or [::1]:port from any process reaches the sandbox's own loopback.
  virtual Result<std::vector<UniqueFd>> Dial(const Sandbox& sandbox, size_t count) = 0;
  // A TCP socket that listens on 127.0.0.1:`port` of the sandbox's own network. Only processes in
  // the sandbox can connect to it. kAlreadyExists: somebody in the sandbox has that port.
  virtual Result<UniqueFd> Listen(const Sandbox& sandbox, uint16_t port) = 0;
  virtual Result<Usage> Measure(const Sandbox& sandbox) = 0;
  // What it has used since its start; cheaper than Measure().
  struct Work {
    int64_t cpu_ns = 0;
    std::optional<int64_t> waited_ns;  // for a CPU; not every kernel counts it
    int64_t written_bytes = 0;         // to its disk, by the kernel for it
  };
  virtual Result<Work> MeasureWork(const Sandbox& sandbox) = 0;
  // CPU time of all sandboxes together: tells at once when nobody does anything.
  virtual Result<int64_t> CpuTimeOfAll() = 0;
  // Whether it gets a CPU only when no other sandbox wants it. kUnimplemented: not on this kernel.
  virtual Status StandBehind(const Sandbox& sandbox, bool behind) = 0;
  // How fast it may write to its disk, in bytes per second; 0 = as fast as it can.
  // kUnimplemented: not on this machine.
  virtual Status LimitWrites(const Sandbox& sandbox, int64_t rate) = 0;
  // What is free where the disks of sandboxes lie, and how much of it one of them takes, in bytes.
  virtual Result<int64_t> FreeDisk() = 0;
  virtual Result<int64_t> DiskTaken(const Sandbox& sandbox) = 0;
  // Whether its processes stand still; soon, when what the kernel does for them has come to its
  // end.
  virtual Status SetFrozen(const Sandbox& sandbox, bool frozen) = 0;
  // Of a sandbox whose `process` is readable, before Destroy().
  virtual ExitReason WhyEnded(const Sandbox& sandbox) = 0;

  // ---- saving: launcher jobs like Create() ------------------------------------
  // Freeze, sync, save, in this order. On failure the sandbox runs on as if nothing had happened.
  // `memory` false: only its files are kept. If the memory cannot be saved (a traced process, a
  // nested pid namespace, no CRIU here) the sandbox stays frozen and Saved says so.
  // Afterwards it lives only as Saved (kFrozen: it also keeps its slot and its cgroup).
  virtual Result<Saved> Pause(const std::string& id, bool memory, Deadline deadline) = 0;
  // The reverse. `memory` false: its files only, a cold boot with `spec.boot` and a new boot id.
  // `spec.id` names what was paused. On failure it stays paused.
  virtual Result<Sandbox> Resume(const Spec& spec, bool memory, Deadline deadline, int abort) = 0;
  // An immutable copy of a running sandbox, which stands still meanwhile and keeps its processes
  // and connections. Without `memory`, and where that cannot be saved, the snapshot has files only
  // (kFiles).
  virtual Result<Saved> Snapshot(const std::string& id, const std::string& snapshot_id, bool memory,
                                 Deadline deadline) = 0;
  // Removes a paused sandbox's or a snapshot's files; unknown ids succeed. Sandboxes made from a
  // snapshot keep what they share with it.
  virtual Status DeleteSaved(const std::string& id) = 0;
  // Gives a paused sandbox (not one that is kFrozen) a larger disk: wholly or not at all. One that
  // is large enough stays as it is.
  virtual Status GrowDisk(const std::string& id, int64_t bytes, Deadline deadline) = 0;
  // After whoever saved or resumed this sandbox died or gave up: thaws it if it was to run.
  // kDeadlineExceeded: it is still being saved; to be asked again. Another error: what lives of it
  // is to be removed, it is saved or broken.
  virtual Status Settle(const Sandbox& sandbox) = 0;
  // When an answer was sent and nobody waits: what could be put off.
  virtual void TidyUp() = 0;
  // When there has been nothing to do for a while: a small step that makes a later call faster.
  // False: there is none.
  virtual bool PrepareAhead() = 0;
  // What is saved under this id, or everything by this server; without those that stay frozen.
  virtual std::optional<Saved> GetSaved(const std::string& id) = 0;
  virtual std::vector<Saved> ListSaved() = 0;

  // ---- network: in the engine's main process ----------------------------------
  // Called once, before the others here: from now on `blocked` hears of what sandboxes tried in
  // vain.
  virtual Status WatchNetwork(EventLoop& loop, std::function<void(Blocked)> blocked) = 0;
  // A sandbox lives from now on (built, continued or adopted), or no more.
  virtual void Started(const Sandbox& sandbox) = 0;
  virtual void Ended(const Sandbox& sandbox) = 0;
  // Replaces what the sandbox may reach, at once and as a whole; connections to what it may no
  // longer reach are cut. It is remembered when the engine starts again.
  virtual Status SetEgress(const Sandbox& sandbox, const Egress& egress) = 0;

  // Takes effect at once. The disk of a living sandbox cannot change: kInvalidArgument; and no
  // process gets back a right to open files that it had lost.
  virtual Status SetLimits(const Sandbox& sandbox, const Limits& limits) = 0;
};

}  // namespace caisson::engine
