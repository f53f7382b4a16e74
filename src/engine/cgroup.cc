#include "engine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/major.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/cgroup_file.h"

namespace caisson::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int64_t kCpuPeriodUs = 100'000;  // the kernel's own default, in both versions
constexpr size_t kMaxIdBytes = 64;

// SECURITY: an id becomes part of a path that root writes to.
bool IsValidId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

// Removes the cgroups below `path`, deepest first. Failures show when the parent is removed.
void RemoveNested(int directory, const char* path, int depth) {
  UniqueFd fd(openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || depth > 64) return;
  DIR* dir = fdopendir(dup(fd.get()));
  if (!dir) return;
  while (dirent* entry = readdir(dir)) {
    if (entry->d_type != DT_DIR || entry->d_name == std::string_view(".") ||
        entry->d_name == std::string_view(".."))
      continue;
    RemoveNested(fd.get(), entry->d_name, depth + 1);
    unlinkat(fd.get(), entry->d_name, AT_REMOVEDIR);
  }
  closedir(dir);
}

// Waits until "key value" stands in cgroup.events. By looking, not by POLLPRI: the kernel sends
// that at most every 10 ms, while a kill or a freeze mostly takes less than one.
Status WaitEvent(int directory, std::string_view id, std::string_view key, int64_t value,
                 Clock::time_point deadline, std::string_view what) {
  CgroupPath path(id, "cgroup.events");
  UniqueFd fd(openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("cannot open {}", path.c_str());
  auto pause = std::chrono::microseconds(50);
  while (true) {
    CgroupText events;
    TRY(events.Refresh(fd.get()));
    if (events.Find(key) == value) return {};
    auto now = Clock::now();
    if (now >= deadline)
      return Fail(Code::kDeadlineExceeded, "sandbox {}: {} took too long", id, what);
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
}

}  // namespace

Status CgroupEntry::EnterV1() const {
  for (const UniqueFd& tasks : v1)
    if (write(tasks.get(), "0", 1) != 1) return FailErrno("cannot enter the sandbox's cgroup");
  return {};
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : parent_(std::exchange(other.parent_, nullptr)),
      id_(std::move(other.id_)),
      owns_(std::exchange(other.owns_, false)) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this != &other) {
    Cgroup old(std::move(*this));
    parent_ = std::exchange(other.parent_, nullptr);
    id_ = std::move(other.id_);
    owns_ = std::exchange(other.owns_, false);
  }
  return *this;
}

Cgroup::~Cgroup() {
  if (!owns_) return;
  if (Status removed = Remove(); !removed)
    LogError("cannot remove a sandbox's cgroup",
             {{"sandbox", id_}, {"error", removed.error().message()}});
}

int Cgroup::Directory(CgroupTree tree) const { return parent_->fds_[tree].get(); }

CgroupTree Cgroup::Controller(CgroupTree v1) const {
  return parent_->kind() == CgroupLayout::Kind::kV2 ? kUnifiedTree : v1;
}

Status Cgroup::Write(CgroupTree tree, std::string_view file, std::string_view value) const {
  return WriteCgroupFile(Directory(tree), CgroupPath(id_, file).c_str(), value,
                         parent_->layout_.plain_files);
}

Status Cgroup::Write(CgroupTree tree, std::string_view file, int64_t value) const {
  char text[24];
  auto end = fmt::format_to_n(text, sizeof text, "{}", value).out;
  return Write(tree, file, std::string_view(text, static_cast<size_t>(end - text)));
}

Result<Cgroup> Cgroup::Create(const CgroupParent& parent, std::string_view id,
                              const Limits& limits) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not a sandbox id", id);
  Cgroup cgroup;
  for (size_t tree = 0; tree < kCgroupTrees; ++tree) {
    if (!parent.fds_[tree]) continue;
    CgroupPath path(id, "");
    if (mkdirat(parent.fds_[tree].get(), path.c_str(), 0755) != 0) {
      if (errno == EEXIST)
        return Fail(Code::kAlreadyExists, "there is already a cgroup of sandbox {}", id);
      return FailErrno("cannot make the cgroup of sandbox {}", id);
    }
    // Owned from the first directory on: a failure below removes what is there.
    if (!cgroup) {
      cgroup = Cgroup(&parent, id);
      cgroup.owns_ = true;
    }
  }
  TRY(cgroup.SetLimits(limits));
  return cgroup;
}

Result<Cgroup> Cgroup::Open(const CgroupParent& parent, std::string_view id) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not a sandbox id", id);
  Cgroup cgroup(&parent, id);
  if (faccessat(cgroup.Directory(kUnifiedTree), cgroup.id_.c_str(), F_OK, 0) != 0)
    return Fail(Code::kNotFound, "there is no cgroup of sandbox {}", id);
  return cgroup;
}

Cgroup Cgroup::Leftover(const CgroupParent& parent, std::string_view id) {
  return IsValidId(id) ? Cgroup(&parent, id) : Cgroup();
}

Result<CgroupEntry> Cgroup::PrepareEntry() const {
  CgroupEntry entry;
  entry.v2.Reset(openat(Directory(kUnifiedTree), id_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entry.v2) return FailErrno("cannot open the cgroup of sandbox {}", id_);
  if (parent_->kind() == CgroupLayout::Kind::kV2) return entry;
  for (CgroupTree tree : {kMemoryTree, kCpuTree, kPidsTree}) {
    UniqueFd fd(openat(Directory(tree), CgroupPath(id_, "tasks").c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return FailErrno("cannot open the cgroup of sandbox {}", id_);
    entry.v1.push_back(std::move(fd));
  }
  return entry;
}

Status Cgroup::Attach(pid_t pid) const {
  for (size_t tree = 0; tree < kCgroupTrees; ++tree)
    if (parent_->fds_[tree]) TRY(Write(static_cast<CgroupTree>(tree), "cgroup.procs", pid));
  return {};
}

Status Cgroup::SetLimits(const Limits& limits) {
  if (limits.cpus < 1 || limits.memory_bytes < 1 || limits.pids < 1)
    return Fail(Code::kInvalidArgument, "limits of CPUs, memory and pids must be at least 1");
  const int64_t quota = limits.cpus * kCpuPeriodUs;
  if (parent_->kind() == CgroupLayout::Kind::kV2) {
    TRY(Write(kUnifiedTree, "memory.max", limits.memory_bytes));
    if (parent_->has_swap_) TRY(Write(kUnifiedTree, "memory.swap.max", 0));
    TRY(Write(kUnifiedTree, "pids.max", limits.pids));
    char cpu[48];
    auto end = fmt::format_to_n(cpu, sizeof cpu, "{} {}", quota, kCpuPeriodUs).out;
    return Write(kUnifiedTree, "cpu.max", std::string_view(cpu, static_cast<size_t>(end - cpu)));
  }
  TRY(SetMemoryV1(limits.memory_bytes));
  TRY(Write(kPidsTree, "pids.max", limits.pids));
  return Write(kCpuTree, "cpu.cfs_quota_us", quota);
}

Status Cgroup::SetMemoryV1(int64_t bytes) {
  // memory + swap may at no moment be less than memory: which comes first depends on whether the
  // limit grows or shrinks.
  Status set = Write(kMemoryTree, "memory.limit_in_bytes", bytes);
  if (!parent_->has_swap_) return set;
  bool grows = !set && set.error().sys_errno() == EINVAL;
  if (!set && !grows) return set;
  TRY(Write(kMemoryTree, "memory.memsw.limit_in_bytes", bytes));
  return grows ? Write(kMemoryTree, "memory.limit_in_bytes", bytes) : Status();
}

Status Cgroup::Kill() { return Write(kUnifiedTree, "cgroup.kill", 1); }

Status Cgroup::WaitEmpty(milliseconds timeout) const {
  return WaitEvent(Directory(kUnifiedTree), id_, "populated", 0, Clock::now() + timeout,
                   "ending its processes");
}

Status Cgroup::SetFrozen(bool frozen) {
  return Write(kUnifiedTree, "cgroup.freeze", frozen ? 1 : 0);
}

Status Cgroup::Freeze(milliseconds timeout) {
  auto deadline = Clock::now() + timeout;
  TRY(SetFrozen(true));
  Status frozen =
      WaitEvent(Directory(kUnifiedTree), id_, "frozen", 1, deadline, "freezing its processes");
  if (!frozen) TRY(SetFrozen(false));
  return frozen;
}

Status Cgroup::Thaw(milliseconds timeout) {
  auto deadline = Clock::now() + timeout;
  TRY(SetFrozen(false));
  return WaitEvent(Directory(kUnifiedTree), id_, "frozen", 0, deadline, "thawing its processes");
}

Result<bool> Cgroup::frozen() const {
  TRY_ASSIGN(auto text,
             CgroupText::Read(Directory(kUnifiedTree), CgroupPath(id_, "cgroup.freeze").c_str()));
  return text.Number() == 1;
}

void Cgroup::Reclaim() {
  if (parent_->kind() == CgroupLayout::Kind::kHybrid) {
    (void)Write(kMemoryTree, "memory.force_empty", 0);
    return;
  }
  Usage usage;
  if (Measure(usage))
    (void)Write(kUnifiedTree, "memory.reclaim", usage.memory_used_bytes + usage.memory_cache_bytes);
}

std::string Cgroup::unified_path() const {
  return fmt::format("{}/{}/{}", parent_->layout_.bases[kUnifiedTree], parent_->name_, id_);
}

Result<std::vector<pid_t>> Cgroup::Processes() const {
  // There may be thousands, and the kernel gives a page of them at a time.
  TRY_ASSIGN(std::string text, ReadFile(fmt::format("/proc/self/fd/{}/{}", Directory(kUnifiedTree),
                                                    CgroupPath(id_, "cgroup.procs").c_str())));
  std::vector<pid_t> pids;
  for (std::string_view line : Split(text, '\n'))
    if (auto pid = ParseInt<pid_t>(line)) pids.push_back(*pid);
  return pids;
}

Status Cgroup::StandBehind(bool behind) const {
  Status set = Write(Controller(kCpuTree), "cpu.idle", behind ? 1 : 0);
  if (!set && set.error().sys_errno() == ENOENT)
    return Fail(Code::kUnimplemented, "this kernel has no cpu.idle");
  return set;
}

Status Cgroup::LimitWrites(int loop, int64_t rate) const {
  const std::string device = fmt::format("{}:{}", LOOP_MAJOR, loop);
  const CgroupLayout& layout = parent_->layout_;
  if (layout.kind == CgroupLayout::Kind::kV2) {
    Status set = Write(kUnifiedTree, "io.max",
                       fmt::format("{} wbps={}", device, rate > 0 ? fmt::to_string(rate) : "max"));
    if (set || set.error().sys_errno() != ENOENT) return set;
    return Fail(Code::kUnimplemented, "the cgroup controller io is not available");
  }
  // v1 counts what the kernel writes back as the kernel's own, so only the root's rule holds.
  if (layout.write_rules.empty())
    return Fail(Code::kUnimplemented, "there is no cgroup tree blkio");
  if (rate <= 0) {  // the first rule of a device takes the kernel 25 ms, and most have none
    TRY_ASSIGN(std::string rules, ReadFile(layout.write_rules));
    if (("\n" + rules).find("\n" + device + " ") == std::string::npos) return {};
  }
  return WriteCgroupFile(AT_FDCWD, layout.write_rules.c_str(), fmt::format("{} {}", device, rate),
                         layout.plain_files);
}

Result<int64_t> Cgroup::CpuTime() const {
  TRY_ASSIGN(auto cpu,
             CgroupText::Read(Directory(kUnifiedTree), CgroupPath(id_, "cpu.stat").c_str()));
  return cpu.Find("usage_usec").value_or(0) * 1000;
}

std::optional<int64_t> Cgroup::CpuWait() const {
  auto text = CgroupText::Read(Directory(kUnifiedTree), CgroupPath(id_, "cpu.pressure").c_str());
  if (!text) return std::nullopt;
  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS"
  constexpr std::string_view kTotal = "total=";
  std::string_view line = text->text().substr(0, text->text().find('\n'));
  size_t at = line.find(kTotal);
  if (at == std::string_view::npos) return std::nullopt;
  auto microseconds = ParseInt<int64_t>(line.substr(at + kTotal.size()));
  if (!microseconds) return std::nullopt;
  return *microseconds * 1000;
}

Status Cgroup::Measure(Usage& usage) const {
  const bool v2 = parent_->kind() == CgroupLayout::Kind::kV2;
  auto read = [&](CgroupTree tree, std::string_view file) {
    return CgroupText::Read(Directory(Controller(tree)), CgroupPath(id_, file).c_str());
  };
  usage.at = Now();
  TRY_ASSIGN(usage.cpu_ns, CpuTime());
  TRY_ASSIGN(auto current, read(kMemoryTree, v2 ? "memory.current" : "memory.usage_in_bytes"));
  TRY_ASSIGN(auto limit, read(kMemoryTree, v2 ? "memory.max" : "memory.limit_in_bytes"));
  TRY_ASSIGN(auto events, read(kMemoryTree, v2 ? "memory.events" : "memory.oom_control"));
  TRY_ASSIGN(auto stat, read(kMemoryTree, "memory.stat"));
  TRY_ASSIGN(auto pids, read(kPidsTree, "pids.current"));
  TRY_ASSIGN(auto refused, read(kPidsTree, "pids.events"));
  // Cache is what the kernel can take back: file pages, but not tmpfs, which has nowhere to go.
  usage.memory_cache_bytes = stat.Find(v2 ? "active_file" : "total_active_file").value_or(0) +
                             stat.Find(v2 ? "inactive_file" : "total_inactive_file").value_or(0);
  usage.memory_used_bytes =
      std::max<int64_t>(current.Number().value_or(0) - usage.memory_cache_bytes, 0);
  usage.memory_limit_bytes = limit.Number().value_or(0);
  usage.oom_kills = events.Find("oom_kill").value_or(0);
  usage.pids = pids.Number().value_or(0);
  usage.pids_refused = refused.Find("max").value_or(0);
  return {};
}

Status Cgroup::Remove(milliseconds timeout) {
  if (!parent_) return {};
  auto deadline = Clock::now() + timeout;
  if (Status killed = Kill(); killed) {
    TRY(WaitEmpty(timeout));
  } else if (killed.error().sys_errno() != ENOENT) {
    return killed;
  }
  // v2 last: as long as it is there, List() finds what is left.
  for (size_t tree = kCgroupTrees; tree-- > 0;) {
    int directory = parent_->fds_[tree].get();
    if (directory < 0) continue;
    while (unlinkat(directory, id_.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      // Busy: nested cgroups, or a process that has died but not left yet.
      if (errno != EBUSY || Clock::now() >= deadline)
        return FailErrno("cannot remove the cgroup of sandbox {}", id_);
      RemoveNested(directory, id_.c_str(), 0);
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  parent_ = nullptr;
  owns_ = false;
  return {};
}

}  // namespace caisson::engine
