#include "engine/restoration.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "engine/child.h"
#include "engine/errand.h"
#include "engine/large_areas.h"
#include "engine/open_files.h"
#include "engine/pidfd.h"
#include "engine/saved.h"
#include "engine/stage.h"
#include "engine/trust.h"
#include "engine/user_namespace.h"

namespace caisson::engine {
namespace {

// Runs in the process that becomes CRIU and whose children are the sandbox.
Status EnterCgroup(const CgroupEntry& entry) {
  TRY(entry.EnterV1());
  if (unshare(CLONE_NEWCGROUP)) return FailErrno("taking a cgroup namespace");
  return {};
}

// As the child does for itself in a cold start, and before the guest runs again. The kernel takes
// these settings only from a process of the user namespace they are for.
Result<Errand> LimitShare(int pid, const MachineShare& share) {
  UniqueFd ids(open(fmt::format("/proc/{}/ns/user", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!ids) return FailErrno("opening the restored user namespace");
  return Errand::Send([&] {
    bool done = setns(ids.get(), CLONE_NEWUSER) == 0 && LimitInotify(share, "/proc");
    return std::string(done ? "done" : "");
  });
}

// CRIU gives deleted files that are still open a name while it restores them. If it was killed
// right then, it does not expect to find these names the next time.
void RemoveGhosts(int disk) {
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::path upper = fmt::format("/proc/self/fd/{}/upper", disk);
  for (fs::recursive_directory_iterator it(upper, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".ghost") && name.find(".cr.") != std::string::npos)
      unlink(it->path().c_str());
  }
}

}  // namespace

Result<Sandbox> Restoration::Run() {
  auto begin = std::chrono::steady_clock::now();
  host_.steps().Reset();
  TRY(RunSteps());
  auto took = std::chrono::steady_clock::now() - begin;
  LogDebug("sandbox continued", {{"sandbox", spec_.id},
                                 {"ms", std::chrono::duration<double, std::milli>(took).count()},
                                 {"steps", host_.steps().Summary()}});
  return Finish(true);
}

Status Restoration::RunSteps() {
  Steps& steps = host_.steps();
  TRY(steps.Run(Step::kSlot, [this] { return TakeSlot(); }));
  TRY(steps.Run(Step::kRecord, [this] { return MakeRecord(); }));
  record_.envd = manifest_.envd;  // the program whose memory it is
  TRY(steps.Run(Step::kCgroup, [this] { return MakeCgroup(); }));
  TRY(steps.Run(Step::kDisk, [this] { return MakeDisk(); }));
  TRY(steps.Run(Step::kRoot, [this] { return PrepareRoot(); }));
  TRY(steps.Run(Step::kRestore, [this] { return Restore(); }));
  return steps.Run(Step::kIdentity, [this]() -> Status {
    TRY(Identify());
    TRY(LimitOpenFiles(cgroup_, spec_.limits.open_files));
    if (connected()) TRY(host_.link()->Settle(slot_));
    return record_file_.MarkReady();
  });
}

Status Restoration::PrepareRoot() {
  TRY_ASSIGN(UniqueFd ids, MakeUserNamespace(slot_.uid_base()));
  TRY(MakeRoot(ids.get()));
  if (!origin_.own_disk) return {};
  TRY_ASSIGN(bool again, MarkResuming(manifest_.saved.id));
  if (again) RemoveGhosts(disk_root_.get());
  return {};
}

Status Restoration::Restore() {
  std::optional<MemoryImages> images;
  std::optional<Errand> limiting;  // while CRIU goes on
  TRY_ASSIGN(CgroupEntry entry, cgroup_.PrepareEntry());
  RestorePlan plan{.open_images = [this, &images]() -> Result<int> {
                     TRY_ASSIGN(MemoryImages opened, MemoryImages::Open(manifest_));
                     images.emplace(std::move(opened));
                     TRY(MoveUserRange(images->fd(), slot_.uid_base()));
                     TRY(LeaveInheritedDead(images->fd()));
                     return images->fd();
                   },
                   .cgroup = entry.v2.get(),
                   .enter = [&entry] { return EnterCgroup(entry); },
                   .set_up_network = [this, &limiting](int pid) -> Status {
                     TRY_ASSIGN(Errand errand, LimitShare(pid, host_.share()));
                     limiting.emplace(std::move(errand));
                     return SetUpNetwork(pid);
                   },
                   .finish_memory = [this, &images, &limiting]() -> Status {
                     if (!limiting || limiting->Wait().empty())
                       return Fail(Code::kInternal,
                                   "what a continued sandbox may take cannot be limited");
                     TRY_ASSIGN(auto processes, cgroup_.Processes());
                     return FillLargeAreas(images->fd(), processes, host_.reserve());
                   }};
  TRY_ASSIGN(Stage stage, Stage::Make(host_.config()));
  TRY_ASSIGN(plan.external_mounts, Sources(stage));
  TRY_ASSIGN(plan.root, stage.AddMount("root", root_.get()));
  TRY_ASSIGN(record_.pid, criu_.Restore(plan, deadline_));
  TRY_ASSIGN(process_, OpenProcess(record_.pid));
  return CheckRoot();
}

// SECURITY: the root went by a path. That it is the one we made is worth two system calls.
Status Restoration::CheckRoot() {
  struct stat made, used;
  if (fstat(root_.get(), &made) || stat(fmt::format("/proc/{}/root", record_.pid).c_str(), &used))
    return FailErrno("looking at the restored root");
  root_.Reset();
  if (made.st_dev != used.st_dev || made.st_ino != used.st_ino)
    return Fail(Code::kInternal, "the sandbox was continued with another root");
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> Restoration::Sources(Stage& stage) const {
  std::map<std::string, std::string> paths;
  TRY_ASSIGN(std::string meminfo, host_.MeminfoFile(spec_.limits.memory_bytes));
  TRY_ASSIGN(paths[kShowsMeminfo], stage.AddFile(kShowsMeminfo, meminfo));
  // What it trusts now, which may be nothing.
  TRY_ASSIGN(paths[kShowsCaBundle], access(kCaBundleFile, F_OK) == 0
                                        ? stage.AddFile(kShowsCaBundle, kCaBundleFile)
                                        : stage.AddText(kShowsCaBundle, ""));
  TRY_ASSIGN(paths[kShowsEnvd], stage.AddFile(kShowsEnvd, manifest_.envd));
  TRY_ASSIGN(paths[kShowsBootId], stage.AddText(kShowsBootId, record_.inside_boot_id + "\n"));
  TRY_ASSIGN(paths[kShowsNothing], stage.AddText(kShowsNothing, ""));
  TRY_ASSIGN(paths[kShowsEmptyDir], stage.AddEmptyDirectory(kShowsEmptyDir));
  std::vector<std::pair<std::string, std::string>> sources;
  for (const HostMount& mount : manifest_.mounts) {
    auto path = paths.find(mount.source);
    if (path == paths.end())
      return Fail(Code::kFailedPrecondition,
                  "'{}' cannot be continued: another version of Caisson saved it (mount of {})",
                  manifest_.saved.id, mount.source);
    sources.emplace_back(mount.point, path->second);
  }
  return sources;
}

Status Restoration::SetUpNetwork(int pid) {
  UniqueFd theirs(open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!theirs) return FailErrno("opening the restored network namespace");
  // Should this process be killed now, it is known which slot has the rules that follow.
  TRY(record_file_.Write(record_));
  TRY(MakeLink(theirs.get()));
  UniqueFd ours(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!ours) return FailErrno("opening this process's network namespace");
  if (setns(theirs.get(), CLONE_NEWNET)) return FailErrno("entering the restored network");
  Status configured = connected() ? ConfigureInside(InsideOf(slot_)) : ConfigureLoopback();
  // What the child does for itself in a cold start; written from outside, with the host's ids.
  if (configured)
    configured = WriteKernelFile(
        "/proc/sys/net/ipv4/ping_group_range",
        fmt::format("{} {}", slot_.uid_base(), slot_.uid_base() + kIdsPerSandbox - 1));
  // SECURITY: this process must never go on inside a sandbox's network.
  if (setns(ours.get(), CLONE_NEWNET)) std::abort();
  return configured;
}

}  // namespace caisson::engine
