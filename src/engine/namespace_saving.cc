// The part of the driver that starts sandboxes, from a template or from what was saved, and saves
// them.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/creation.h"
#include "engine/layers.h"
#include "engine/loop.h"
#include "engine/namespace_driver.h"
#include "engine/open_files.h"
#include "engine/process.h"
#include "engine/record.h"
#include "engine/restoration.h"
#include "engine/saved.h"
#include "engine/saving.h"
#include "engine/spec.h"

namespace caisson::engine {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kTrialTimeout{20};
constexpr std::chrono::seconds kThawTimeout{10};
// After a pause the kernel releases the disk when the last of the dead processes is gone.
constexpr std::chrono::seconds kDiskTimeout{10};
constexpr const char* kTrialFile = "criu-works";

std::chrono::milliseconds Left(Deadline deadline) {
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()));
}

// Its memory, if it is to be used and can be: kDataLoss if it is damaged.
Result<bool> UseMemory(const Manifest& manifest, bool wanted, const std::optional<Criu>& criu,
                       const std::string& why_no_criu, const std::string& host_boot_id) {
  if (!wanted || manifest.saved.tier != Tier::kMemory) return false;
  if (!criu)
    return Fail(Code::kFailedPrecondition,
                "'{}' was saved with its memory, which cannot be continued here now: {}",
                manifest.saved.id, why_no_criu);
  // Within one run of the host its own memory stands behind the files; a disk is trusted less.
  TRY(VerifyMemory(manifest, manifest.host_boot_id != host_boot_id));
  return true;
}

}  // namespace

void NamespaceDriver::FindCriu() {
  if (!config_.save_memory) {
    why_no_criu_ = "saving memory is switched off (save_memory)";
    return;
  }
  auto criu = Criu::Find(config_);
  if (!criu) {
    why_no_criu_ = criu.error().message();
    return;
  }
  utsname kernel;
  uname(&kernel);
  std::string proof = fmt::format("{} {} {}\n", criu->version(), kernel.release, kernel.version);
  if (auto tried = ReadFile(kTrialFile, 4096); !tried || *tried != proof) {
    Status works = TryCriu(*criu, steady_clock::now() + kTrialTimeout);
    if (!works) {
      why_no_criu_ = fmt::format("CRIU {} does not work on this kernel: {}", criu->version(),
                                 works.error().message());
      LogWarn("memory of sandboxes cannot be saved", {{"reason", why_no_criu_}});
      return;
    }
    (void)WriteFileAtomic(kTrialFile, proof, 0600);
  }
  criu_ = std::move(*criu);
}

Result<Sandbox> NamespaceDriver::Create(const Spec& spec, Deadline deadline, int abort) {
  TRY(CheckSpec(spec));
  if (spec.snapshot.empty()) return Creation(*host_, spec, {}, deadline, abort).Run();
  // Until the record names the layers, nobody may collect them.
  TRY_ASSIGN(LayersInUse in_use, LayersInUse::Hold());
  TRY_ASSIGN(Manifest manifest, ReadSaved(spec.snapshot));
  if (!manifest.snapshot)
    return Fail(Code::kInvalidArgument, "'{}' is not a snapshot", spec.snapshot);
  Origin origin{.root_dir = manifest.root_dir, .layers = manifest.layers};
  TRY_ASSIGN(bool memory, UseMemory(manifest, true, criu_, why_no_criu_, host_->boot_id()));
  if (!memory) return Creation(*host_, spec, origin, deadline, abort).Run();
  origin.boot_id = manifest.boot_id;
  return Restoration(*host_, spec, origin, manifest, *criu_, deadline, abort).Run();
}

Result<Saved> NamespaceDriver::Pause(const std::string& id, bool memory, Deadline deadline) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not a sandbox id", id);
  if (SavedExists(id)) return FinishPause(id);
  Saving saving(*host_, criu_ ? &*criu_ : nullptr, why_no_criu_, id, deadline);
  TRY_ASSIGN(Saved saved, saving.Pause(memory));
  return saved.tier == Tier::kFrozen ? saved : FinishPause(id);
}

// Its state is saved: nothing is lost any more. What does not go now goes at the next start.
Result<Saved> NamespaceDriver::FinishPause(const std::string& id) {
  TRY_ASSIGN(Manifest manifest, ReadSaved(id));
  RemoveLeftovers();
  if (Status removed = RemoveLive(id, true, steady_clock::now() + kThawTimeout); !removed)
    LogError("a paused sandbox still has processes",
             {{"sandbox", id}, {"error", removed.error().message()}});
  return manifest.saved;
}

Result<Sandbox> NamespaceDriver::Resume(const Spec& spec, bool memory, Deadline deadline,
                                        int abort) {
  TRY(CheckSpec(spec));
  if (!SavedExists(spec.id)) {
    if (memory) return Thaw(spec.id, deadline);
    TRY(SaveFiles(spec.id, deadline));
  }
  TRY_ASSIGN(Manifest manifest, ReadSaved(spec.id));
  TRY(AwaitLoopGone(manifest.loop, spec.id, kDiskTimeout));
  Origin origin{.root_dir = manifest.root_dir, .layers = manifest.layers, .own_disk = true};
  TRY_ASSIGN(memory, UseMemory(manifest, memory, criu_, why_no_criu_, host_->boot_id()));
  if (memory) origin.boot_id = manifest.boot_id;
  auto sandbox = memory ? Restoration(*host_, spec, origin, manifest, *criu_, deadline, abort).Run()
                        : Creation(*host_, spec, origin, deadline, abort).Run();
  if (sandbox) TRY(RemoveSaved(spec.id));
  return sandbox;
}

Result<Sandbox> NamespaceDriver::Thaw(const std::string& id, Deadline deadline) {
  TRY_ASSIGN(Sandbox sandbox, Adopt(id));
  // A launcher may have come so far before and no further.
  if (!sandbox.why_frozen.empty()) {
    TRY_ASSIGN(Record record, ReadRecord(id));
    record.why_frozen.clear();
    TRY(RewriteRecord(record));
  }
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), id));
  TRY(cgroup.Thaw(Left(deadline)));
  sandbox.why_frozen.clear();
  sandbox.instance.continued = true;
  return sandbox;
}

Status NamespaceDriver::SaveFiles(const std::string& id, Deadline deadline) {
  TRY_ASSIGN(Sandbox frozen, Thaw(id, deadline));
  frozen = {};
  TRY(Pause(id, false, deadline));
  return {};
}

Result<Saved> NamespaceDriver::Snapshot(const std::string& id, const std::string& snapshot_id,
                                        bool memory, Deadline deadline) {
  if (!IsValidId(id) || !IsValidId(snapshot_id))
    return Fail(Code::kInvalidArgument, "'{}' or '{}' is not an id", id, snapshot_id);
  // A launcher died when all but the thawing was done: ids of snapshots are never used twice.
  if (auto manifest = ReadSaved(snapshot_id)) {
    TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), id));
    TRY(cgroup.Thaw(Left(deadline)));
    return manifest->saved;
  }
  return Saving(*host_, criu_ ? &*criu_ : nullptr, why_no_criu_, id, deadline)
      .Snapshot(snapshot_id, memory);
}

Status NamespaceDriver::DeleteSaved(const std::string& id) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not an id", id);
  auto manifest = ReadSaved(id);
  TRY(RemoveSaved(id));
  if (!manifest || !manifest->snapshot) TRY(shelf_.RemoveImage(id));
  if (manifest && !manifest->layers.empty()) CollectUnused();
  return {};
}

std::optional<Saved> NamespaceDriver::GetSaved(const std::string& id) {
  if (!IsValidId(id) || !SavedExists(id)) return std::nullopt;
  auto manifest = ReadSaved(id);
  return manifest ? manifest->saved : Saved{.id = id};
}

std::vector<Saved> NamespaceDriver::ListSaved() {
  std::vector<Saved> list;
  for (const SavedEntry& entry : ListSavedEntries())
    list.push_back(entry.manifest ? entry.manifest->saved : Saved{.id = entry.id});
  return list;
}

Status NamespaceDriver::Settle(const Sandbox& sandbox) {
  const std::string& id = sandbox.instance.id;
  if (!sandbox.why_frozen.empty()) return {};
  TRY(AwaitUnlocked(id, std::chrono::milliseconds(0)));
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), id));
  TRY_ASSIGN(bool frozen, cgroup.frozen());
  // It was resumed, and only the saved state was not removed yet.
  if (!frozen) return RemoveSaved(id);
  if (SavedExists(id)) return Fail(Code::kFailedPrecondition, "it is paused");
  LogInfo("a sandbox was about to be paused and goes on", {{"sandbox", id}});
  return cgroup.Thaw(kThawTimeout);
}

Status NamespaceDriver::SettleBy(Deadline deadline, const Sandbox& sandbox) {
  for (;;) {
    Status settled = Settle(sandbox);
    if (settled || settled.error().code() != Code::kDeadlineExceeded ||
        steady_clock::now() >= deadline)
      return settled;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void NamespaceDriver::TidyUp() {
  EmptyTrash();
  host_->layers().Forget();
}

void NamespaceDriver::CheckLayersAhead() const {
  const pid_t parent = getpid();
  auto forked = ForkProcess({}, [&] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return 1;
    SetProcessTitle("caisson: layers");
    sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);  // sandboxes come first
    CheckLayers(host_->boot_id());
    return 0;
  });
  if (!forked)
    LogWarn("layers are checked only when they are used", {{"error", forked.error().message()}});
}

bool NamespaceDriver::PrepareAhead() { return host_->reserve().Refill(); }

void NamespaceDriver::CollectUnused() {
  CollectLayers([]() -> std::optional<std::vector<std::string>> {
    std::vector<std::string> needed;
    auto add = [&](const std::vector<std::string>& layers) {
      needed.insert(needed.end(), layers.begin(), layers.end());
    };
    for (const SavedEntry& entry : ListSavedEntries()) {
      if (!entry.manifest) return std::nullopt;
      add(entry.manifest->layers);
    }
    auto ids = RecordFile::List();
    for (const std::string& id : ids ? *ids : std::vector<std::string>()) {
      RecordFile file = RecordFile::Leftover(id);
      if (auto record = file.Read()) add(record->layers);
      file.Keep();
    }
    return needed;
  });
}

Status NamespaceDriver::SetLimits(const Sandbox& sandbox, const Limits& limits) {
  const std::string& id = sandbox.instance.id;
  TRY_ASSIGN(Record record, ReadRecord(id));
  if (limits.disk_bytes != record.limits.disk_bytes)
    return Fail(Code::kInvalidArgument, "the disk of a running sandbox cannot change its size");
  Spec spec{.id = id, .limits = limits};
  TRY(CheckSpec(spec));
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), id));
  TRY(cgroup.SetLimits(limits));
  if (limits.open_files < record.limits.open_files) TRY(LimitOpenFiles(cgroup, limits.open_files));
  record.limits = limits;
  return RewriteRecord(record);
}

Status NamespaceDriver::GrowDisk(const std::string& id, int64_t bytes, Deadline deadline) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not an id", id);
  TRY_ASSIGN(Manifest manifest, ReadSaved(id));
  if (manifest.snapshot) return Fail(Code::kInvalidArgument, "'{}' is a snapshot", id);
  TRY(AwaitLoopGone(manifest.loop, id, kDiskTimeout));
  if (auto image = shelf_.FindImage(id))
    TRY(CheckRoom(BytesOfCopy(*image), config_.min_free_disk_mb << 20));
  return shelf_.GrowImage(id, bytes, config_.save_sync, Left(deadline));
}

}  // namespace caisson::engine
