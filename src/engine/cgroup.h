// Control groups: the limits of a sandbox, and the handle by which all of it is killed, frozen and
// measured.
//
// Two layouts of the kernel's tree are supported, found once by CgroupLayout::Detect():
//   v2      one unified tree with the controllers memory, cpu and pids;
//   hybrid  v1 trees for memory, cpu and pids, and a v2 tree beside them for freeze, kill and time.
// In each tree a server has one directory, caisson-<tag>, with one directory per sandbox below it,
// named by the sandbox's id.
//
// How a process gets in: clone3(CLONE_INTO_CGROUP) with CgroupEntry::v2, then the child itself
// calls CgroupEntry::EnterV1() before anything else. It must take its cgroup namespace after that
// (unshare(CLONE_NEWCGROUP), not a clone3 flag): clone3 would root it at the launcher's cgroup.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"

namespace caisson::engine {

// The trees of the kernel: the v2 one, and the v1 ones of the hybrid layout.
enum CgroupTree { kUnifiedTree, kMemoryTree, kCpuTree, kPidsTree };
inline constexpr size_t kCgroupTrees = 4;

// Where our directories go.
struct CgroupLayout {
  enum class Kind { kV2, kHybrid };

  Kind kind = Kind::kV2;
  // The directories below which we may make ours, by CgroupTree. v2: only the unified one is set.
  std::array<std::string, kCgroupTrees> bases;
  // hybrid: limits the writes to a device, whoever makes them. "" = there is no such file.
  std::string write_rules;
  // For tests: the trees are ordinary directories, where a file comes to be when it is written.
  bool plain_files = false;

  // Looks at the mounted trees. The directory is the root of each tree where we may write there,
  // else the cgroup this process is in (a container, a delegated systemd unit). Fails in plain
  // words when memory, cpu or pids cannot be limited or there is no v2 tree. Writes nothing.
  // Tests give a copy of the file tree and of /proc/self/cgroup.
  static Result<CgroupLayout> Detect(const std::string& root = "/sys/fs/cgroup",
                                     const std::string& self = "/proc/self/cgroup");
};

// This server's directory in each tree; open one per process, before the first sandbox.
class CgroupParent {
 public:
  // Makes (or finds) caisson-<server_tag> in each tree. v2: also switches the controllers on for
  // it; if the directory above has processes of its own (v2 forbids both), these are first moved to
  // a leaf beside ours named caisson-server.
  static Result<std::unique_ptr<CgroupParent>> Open(const CgroupLayout& layout,
                                                    std::string_view server_tag);

  CgroupLayout::Kind kind() const { return layout_.kind; }
  // Ids that have cgroups, live or left over. (The v2 one is made first and removed last.)
  Result<std::vector<std::string>> List() const;
  // Of all sandboxes together, in nanoseconds.
  Result<int64_t> CpuTime() const;
  // Removes the server's own directories; does nothing while a sandbox is left in them.
  void RemoveIfEmpty();

 private:
  friend class Cgroup;
  CgroupParent() = default;

  CgroupLayout layout_;
  std::string name_;                        // caisson-<tag>
  std::array<UniqueFd, kCgroupTrees> fds_;  // directories, by CgroupTree
  bool has_swap_ = false;                   // swap is accounted, so it must be forbidden
};

// What a process needs to get into a sandbox's cgroups. All descriptors are close-on-exec.
struct CgroupEntry {
  UniqueFd v2;               // for clone_args.cgroup with CLONE_INTO_CGROUP
  std::vector<UniqueFd> v1;  // `tasks` files; none in the v2 layout

  // Called by the single-threaded child on itself: a thread that moves itself does not take the
  // kernel's global fork lock, which makes it several times cheaper than being moved by another.
  // SECURITY: the child must not go on if this fails: it would run without limits.
  Status EnterV1() const;
};

// The cgroups of one sandbox. One that was created owns them: unless Keep() was called, the
// destructor kills what is inside and removes them. One that was opened is a mere handle.
// Move-only; the CgroupParent must outlive it. Holds no descriptor.
class Cgroup {
 public:
  using Clock = std::chrono::steady_clock;

  Cgroup() = default;  // holds nothing
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  // Makes the directories and sets the limits (disk_bytes is not ours). Swap is never allowed. A
  // left-over of the same name is an error (kAlreadyExists): a killed cgroup must not be used
  // again, the kernel kills whatever is cloned into it later.
  static Result<Cgroup> Create(const CgroupParent& parent, std::string_view id,
                               const Limits& limits);
  // A handle of an existing one; kNotFound when it is not there. Does not own it.
  static Result<Cgroup> Open(const CgroupParent& parent, std::string_view id);
  // A handle of what may be left of one, or nothing at all: to Remove() it. Does not own it.
  static Cgroup Leftover(const CgroupParent& parent, std::string_view id);

  explicit operator bool() const { return parent_ != nullptr; }
  const std::string& id() const { return id_; }

  Result<CgroupEntry> PrepareEntry() const;
  // Moves a foreign process in (all trees). Slower than CgroupEntry; for processes already running.
  Status Attach(pid_t pid) const;
  // Changes the limits of a running sandbox. Memory below what is in use fails.
  Status SetLimits(const Limits& limits);

  // SIGKILL to every process inside, descendants of nested cgroups and frozen ones included.
  // Returns at once; WaitEmpty() waits until the last one has exited.
  Status Kill();
  Status WaitEmpty(std::chrono::milliseconds timeout) const;
  // Returns when every process stands still (or runs again), or kDeadlineExceeded. After a failed
  // Freeze() the sandbox is thawed again.
  Status Freeze(std::chrono::milliseconds timeout);
  Status Thaw(std::chrono::milliseconds timeout);
  // The same without waiting, and without being taken back.
  Status SetFrozen(bool frozen);
  Result<bool> frozen() const;

  // Asks the kernel to write its pages to swap and to drop what it can read again; best effort.
  void Reclaim();
  // The directory of the v2 tree.
  std::string unified_path() const;

  // It gets a CPU only when no other sandbox wants it. kUnimplemented: the kernel cannot (before
  // 5.15).
  Status StandBehind(bool behind) const;
  // How fast the loop device of that number may be written to, in bytes per second; 0 = as fast as
  // it can. kUnimplemented: not here. hybrid: the rule outlives the sandbox and must be taken back.
  Status LimitWrites(int loop, int64_t rate) const;
  // In nanoseconds, since the start.
  Result<int64_t> CpuTime() const;
  // How long something inside wanted a CPU and had none; nothing where the kernel has no PSI.
  std::optional<int64_t> CpuWait() const;
  // Fills at, cpu_ns, memory_*, pids* and oom_kills; leaves the disk fields alone.
  Status Measure(Usage& usage) const;
  // Those directly inside, not in nested cgroups.
  Result<std::vector<pid_t>> Processes() const;

  // Kill(), wait, and remove every directory, nested ones included. Bounded by `timeout`.
  // Idempotent. After success the object holds nothing.
  Status Remove(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  // The sandbox lives on: the object becomes a mere handle.
  void Keep() { owns_ = false; }

 private:
  Cgroup(const CgroupParent* parent, std::string_view id) : parent_(parent), id_(id) {}
  int Directory(CgroupTree tree) const;
  // The tree that has this controller: in the v2 layout always the unified one.
  CgroupTree Controller(CgroupTree v1) const;
  Status Write(CgroupTree tree, std::string_view file, std::string_view value) const;
  Status Write(CgroupTree tree, std::string_view file, int64_t value) const;
  Status SetMemoryV1(int64_t bytes);

  const CgroupParent* parent_ = nullptr;
  std::string id_;
  bool owns_ = false;
};

}  // namespace caisson::engine
