#include "engine/saving.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "engine/child.h"
#include "engine/deleted_files.h"
#include "engine/deleted_places.h"
#include "engine/disk.h"
#include "engine/layers.h"
#include "engine/saved.h"
#include "engine/trust.h"

namespace caisson::engine {
namespace {

constexpr std::chrono::seconds kThawTimeout{10};
constexpr std::chrono::seconds kShortestDump{1};
constexpr int kFreezeAttempts = 50;
constexpr int64_t kFewBytes = 64 << 20;  // in deleted files: not worth counting

std::chrono::milliseconds Left(Deadline deadline) {
  return std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline - std::chrono::steady_clock::now()));
}

// A process that made a child by vfork sleeps until the child has become another program. If it is
// frozen right then CRIU can do nothing with it; a moment later the child is on its way.
bool WaitsForVfork(pid_t pid) {
  auto stat = ReadFile(fmt::format("/proc/{}/stat", pid), 8192);
  size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  return name_end != std::string::npos && stat->substr(name_end, 3) == ") D";
}

// Whether a debugger holds one of its threads.
bool IsTraced(pid_t pid) {
  std::error_code ec;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ec)) {
    auto status = ReadFile(thread.path().string() + "/status", 1 << 20);
    size_t at = status ? status->find("\nTracerPid:\t") : std::string::npos;
    if (at != std::string::npos && status->compare(at + 12, 2, "0\n") != 0) return true;
  }
  return false;
}

// The directories of the sandbox's root where something may be watched by inotify. CRIU looks for
// the name of what is watched in them.
std::vector<std::string> WatchedPlaces(int pid) {
  std::vector<std::string> places;
  // SECURITY: names in it are the guest's: they are listed, never followed, and not without end.
  // What is watched in a place beyond is not found, and the sandbox keeps its memory frozen.
  constexpr size_t kMostPlaces = 1'000;
  std::string root = fmt::format("/proc/{}/root/", pid);
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(root, ec)) {
    if (places.size() == kMostPlaces) break;
    std::string name = entry.path().filename().string();
    if (entry.is_symlink(ec) || !entry.is_directory(ec)) continue;
    if (name != "proc" && name != "sys" && name != "dev" && name != ".caisson")
      places.push_back("/" + name);
  }
  return places;
}

}  // namespace

Saving::Saving(Host& host, const Criu* criu, std::string why_no_criu, std::string id,
               Deadline deadline)
    : host_(host),
      criu_(criu),
      why_no_criu_(std::move(why_no_criu)),
      id_(std::move(id)),
      deadline_(deadline) {}

Saving::~Saving() {
  if (!frozen_) return;
  if (Status thawed = cgroup_.Thaw(kThawTimeout); !thawed)
    LogError("a sandbox cannot be thawed", {{"sandbox", id_}, {"error", thawed.error().message()}});
}

Status Saving::Begin(bool memory) {
  TRY_ASSIGN(record_, ReadRecord(id_));
  if (!record_.why_frozen.empty())
    return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused already", id_);
  TRY_ASSIGN(cgroup_, Cgroup::Open(host_.cgroups(), id_));
  Usage usage;
  if (memory) TRY(cgroup_.Measure(usage));
  TRY(CheckRoom(usage.memory_used_bytes));
  TRY(AwaitUnlocked(id_, Left(deadline_)));
  RemoveLeftovers();
  TRY(host_.steps().Run(Step::kFreeze, [this] { return Freeze(); }));
  return host_.steps().Run(Step::kSync, [this]() -> Status {
    TRY_ASSIGN(UniqueFd disk, Disk::OpenInUse(id_, record_.loop));
    if (syncfs(disk.get())) return FailErrno("syncing the disk of sandbox {}", id_);
    return {};
  });
}

Status Saving::Freeze() {
  for (int attempt = 0;; ++attempt) {
    TRY(cgroup_.Freeze(Left(deadline_)));
    frozen_ = true;
    TRY_ASSIGN(auto processes, cgroup_.Processes());
    if (attempt == kFreezeAttempts ||
        std::none_of(processes.begin(), processes.end(), WaitsForVfork))
      return {};
    TRY(cgroup_.Thaw(Left(deadline_)));
    frozen_ = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
  }
}

Status Saving::CheckRoom(int64_t bytes) const {
  return engine::CheckRoom(bytes, host_.config().min_free_disk_mb << 20);
}

int64_t Saving::MostDeletedBytes() const {
  int64_t limit_mb = host_.config().max_deleted_mb;
  return limit_mb > 0 ? limit_mb << 20 : std::numeric_limits<int64_t>::max();
}

Status Saving::TooMuchDeleted() const {
  return Fail(Code::kOutOfRange,
              "its processes hold more than {} MB in deleted files, too much to save together with "
              "their memory (max_deleted_mb); it runs on",
              host_.config().max_deleted_mb);
}

Status Saving::CheckDeletedFiles(const std::vector<pid_t>& processes) const {
  int64_t most = MostDeletedBytes();
  // It is hardly more than what the disk holds, and that is soon found out.
  TRY_ASSIGN(UniqueFd disk, Disk::OpenInUse(id_, record_.loop));
  struct statvfs inside;
  if (fstatvfs(disk.get(), &inside)) return FailErrno("looking at the disk of sandbox {}", id_);
  auto bytes = static_cast<int64_t>((inside.f_blocks - inside.f_bfree) * inside.f_frsize);
  if (bytes > std::min(most, kFewBytes)) {
    TRY_ASSIGN(bytes, CountDeletedBytes(record_.pid, processes, most, deadline_));
  }
  if (bytes > most) return TooMuchDeleted();
  Usage usage;
  TRY(cgroup_.Measure(usage));
  return CheckRoom(usage.memory_used_bytes + bytes);
}

Status Saving::Dump(int images) const {
  if (!criu_) return Fail(Code::kUnimplemented, "{}", why_no_criu_);
  // CRIU takes what it cannot seize in a frozen cgroup for a process that is just ending, and tries
  // for ten seconds.
  TRY_ASSIGN(auto processes, cgroup_.Processes());
  if (std::any_of(processes.begin(), processes.end(), IsTraced))
    return Fail(Code::kUnimplemented, "a process inside is being traced by a debugger");
  TRY(CheckDeletedFiles(processes));
  // CRIU, once begun, is not stopped.
  if (Left(deadline_) < kShortestDump)
    return Fail(Code::kDeadlineExceeded, "there is too little time left to save the memory");
  DumpPlan plan{.pid = record_.pid,
                .images = images,
                .freezer = cgroup_.unified_path(),
                .lock = RecordPath(id_),
                .scan = WatchedPlaces(record_.pid),
                .deleted_bytes = MostDeletedBytes()};
  for (const HostMount& mount :
       HostMounts(host_.kernel_paths(), host_.config().nesting, HasCaBundle(record_.pid)))
    plan.external_mounts.push_back(mount.point);
  TRY(criu_->Dump(plan, deadline_));
  TRY(CheckDeletedPlaces(images, record_.pid));
  // The last word: not all of them are seen before.
  return CountCopiedBytes(images) > MostDeletedBytes() ? TooMuchDeleted() : Status();
}

Manifest Saving::Describe(const std::string& saved_id, Tier tier) const {
  utsname kernel;
  uname(&kernel);
  auto image = host_.shelf().FindImage(id_);
  return {
      .saved = {.id = saved_id,
                .tier = tier,
                .disk_bytes = image ? AllocatedBytes(*image) : 0,
                .at = Now()},
      .sandbox_id = id_,
      .root_dir = record_.root_dir,
      .envd = record_.envd,
      .boot_id = record_.inside_boot_id,
      .host_boot_id = host_.boot_id(),
      .kernel = kernel.release,
      .criu = criu_ ? criu_->version() : "",
      .disk_limit_bytes = record_.limits.disk_bytes,
      .loop = record_.loop,
      .layers = record_.layers,
      .mounts = HostMounts(host_.kernel_paths(), host_.config().nesting, HasCaBundle(record_.pid))};
}

Result<Saved> Saving::Pause(bool memory) {
  host_.steps().Reset();
  TRY(Begin(memory));
  TRY_ASSIGN(SavedDraft draft, SavedDraft::Begin(id_));
  if (memory) {
    Status dumped = host_.steps().Run(Step::kDump, [&] { return Dump(draft.memory()); });
    if (!dumped && dumped.error().code() == Code::kUnimplemented)
      return StayFrozen(dumped.error().message());
    TRY(std::move(dumped));
  }
  Manifest manifest = Describe(id_, memory ? Tier::kMemory : Tier::kFiles);
  TRY(host_.steps().Run(Step::kCommit, [&]() -> Status {
    bool sync = host_.config().save_sync;
    if (sync) TRY(host_.shelf().SyncImage(id_));
    return draft.Commit(manifest, sync);
  }));
  frozen_ = false;  // it is not to run any more
  LogDebug("sandbox saved", {{"sandbox", id_}, {"steps", host_.steps().Summary()}});
  TRY_ASSIGN(Manifest written, ReadSaved(id_));
  return written.saved;
}

Result<Saved> Saving::StayFrozen(std::string why) {
  record_.why_frozen = std::move(why);
  TRY(RewriteRecord(record_));
  frozen_ = false;
  cgroup_.Reclaim();
  return Saved{.id = id_, .tier = Tier::kFrozen, .why_frozen = record_.why_frozen, .at = Now()};
}

Result<Saved> Saving::Snapshot(const std::string& snapshot_id, bool memory) {
  host_.steps().Reset();
  TRY(Begin(memory));
  if (static_cast<int64_t>(record_.layers.size()) >= host_.config().max_snapshot_layers)
    return Fail(Code::kFailedPrecondition,
                "sandbox '{}' is {} snapshots deep, and no deeper is allowed "
                "(max_snapshot_layers)",
                id_, record_.layers.size());
  TRY_ASSIGN(SavedDraft draft, SavedDraft::Begin(snapshot_id));
  if (memory) {
    Status dumped = host_.steps().Run(Step::kDump, [&] { return Dump(draft.memory()); });
    memory = static_cast<bool>(dumped);
    if (!memory && dumped.error().code() != Code::kUnimplemented)
      return tl::unexpected(dumped.error());
    if (!memory) TRY(draft.Clear());
  }
  Manifest manifest = Describe(snapshot_id, memory ? Tier::kMemory : Tier::kFiles);
  manifest.snapshot = true;
  manifest.loop = -1;
  auto image = host_.shelf().FindFile(id_);
  if (!image) return Fail(Code::kDataLoss, "the disk of sandbox {} is gone", id_);
  TRY(CheckRoom(BytesOfCopy(*image)));
  TRY_ASSIGN(LayersInUse in_use, LayersInUse::Hold());
  TRY_ASSIGN(LayerCopy copy, LayerCopy::Take(*image));
  // Everything that follows needs only the copy.
  TRY(cgroup_.Thaw(kThawTimeout));
  frozen_ = false;
  TRY(host_.steps().Run(Step::kCommit, [&]() -> Status {
    bool sync = host_.config().save_sync;
    TRY_ASSIGN(std::string layer, copy.Finish(sync, host_.boot_id()));
    manifest.layers.push_back(std::move(layer));
    manifest.saved.disk_bytes = copy.bytes();
    return draft.Commit(manifest, sync);
  }));
  LogDebug("snapshot taken", {{"sandbox", id_}, {"steps", host_.steps().Summary()}});
  TRY_ASSIGN(Manifest written, ReadSaved(snapshot_id));
  return written.saved;
}

}  // namespace caisson::engine
