#include "engine/building.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/pidfd.h"
#include "engine/root.h"

namespace caisson::engine {
namespace {

// envd answers even while the sandbox's own processes use all their CPU time.
constexpr int kEnvdNice = -10;
constexpr std::chrono::seconds kKillTimeout{10};

// A random UUID as the kernel writes it.
std::string NewBootId() {
  std::string hex = RandomHex(16);
  hex[12] = '4';
  hex[16] = "89ab"[hex[16] % 4];
  for (size_t at : {8, 13, 18, 23}) hex.insert(at, "-");
  return hex;
}

}  // namespace

Building::Building(Host& host, const Spec& spec, const Origin& origin, Deadline deadline, int abort)
    : host_(host), spec_(spec), origin_(origin), deadline_(deadline), abort_(abort) {}

Building::~Building() {
  if (!slot_) return;
  KillProcess();
  root_.Reset();
  network_namespace_.Reset();
  disk_root_.Reset();
  disk_ = {};
  if ((!cgroup_ || cgroup_.Remove(kKillTimeout)) && Disconnect()) return;
  // SECURITY: something of it still lives, so its uid range and its address must not be given to
  // another sandbox.
  LogError("a sandbox that failed to start cannot be removed completely", {{"sandbox", spec_.id}});
  cgroup_.Keep();
  record_file_.Keep();
  slot_.Keep();
}

void Building::KillProcess() {
  if (!process_) return;
  SendSignal(process_.get(), SIGKILL);
  if (!WaitForExit(process_.get(), kKillTimeout))
    LogError("a killed process does not end", {{"sandbox", spec_.id}, {"pid", record_.pid}});
  process_.Reset();
}

std::chrono::milliseconds Building::Left() const {
  return std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline_ - std::chrono::steady_clock::now()));
}

Status Building::TakeSlot() {
  TRY_ASSIGN(slot_, host_.slots().Allocate(spec_.id));
  return {};
}

Status Building::MakeRecord() {
  bool saved = !origin_.root_dir.empty();
  TRY_ASSIGN(template_, host_.OpenTemplate(saved ? origin_.root_dir : spec_.root_dir, saved));
  TRY_ASSIGN(record_file_, RecordFile::Create(spec_.id));
  record_ = {.id = spec_.id,
             .boot_id = host_.boot_id(),
             .slot = slot_.number(),
             .egress = spec_.egress,
             .limits = spec_.limits,
             .created_at = Now(),
             .root_dir = template_.path,
             .inside_boot_id = origin_.boot_id.empty() ? NewBootId() : origin_.boot_id,
             .layers = origin_.layers};
  TRY_ASSIGN(record_.envd, host_.EnvdProgram());
  std::string path = RecordFile::BootIdPath(spec_.id);
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0444));
  std::string text = record_.inside_boot_id + "\n";
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno("writing the boot id of sandbox {}", spec_.id);
  return {};
}

Status Building::MakeCgroup() {
  TRY_ASSIGN(cgroup_, Cgroup::Create(host_.cgroups(), spec_.id, spec_.limits));
  return {};
}

Status Building::MakeDisk() {
  if (origin_.own_disk) {
    auto path = host_.shelf().FindImage(spec_.id);
    if (!path) return Fail(Code::kDataLoss, "the disk of sandbox {} is gone", spec_.id);
    TRY_ASSIGN(disk_, Disk::Open(*path, spec_.id));
  } else {
    TRY_ASSIGN(const BlankImage* blank, host_.blank_images().Get(spec_.limits.disk_bytes));
    TRY_ASSIGN(disk_, Disk::Create(*blank, host_.shelf().ImagePath(spec_.id), spec_.id));
  }
  record_.loop = disk_.loop();
  return {};
}

Status Building::MakeRoot(int user_namespace) {
  std::vector<int> layers;
  for (const std::string& layer : origin_.layers) {
    TRY_ASSIGN(int mount, host_.layers().Get(layer, host_.boot_id()));
    layers.push_back(mount);
  }
  TRY(disk_.Mount());
  TRY_ASSIGN(disk_root_, disk_.OpenRoot());
  TRY_ASSIGN(root_, MountRoot(template_.fd, layers, disk_.mount(), user_namespace, slot_.uid_base(),
                              host_.config().overlay_by_path));
  disk_.CloseMount();  // the overlay holds it now
  return {};
}

Status Building::Identify() {
  network_namespace_.Reset(
      open(fmt::format("/proc/{}/ns/net", record_.pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!network_namespace_) return FailErrno("opening the new network namespace");
  // Inside, nobody has the right to; if we have not either, it is no reason to give up.
  setpriority(PRIO_PROCESS, static_cast<id_t>(record_.pid), kEnvdNice);
  TRY_ASSIGN(record_.start_time, ReadStartTime(record_.pid));
  return record_file_.Write(record_);
}

Status Building::MakeLink(int network_namespace) {
  if (!connected()) return {};
  // Whoever had the slot before may have been killed together with the launcher.
  TRY(host_.Disconnect(slot_, {}));
  // SECURITY: the rules are there before the first packet can be.
  TRY(host_.firewall().Replace(slot_.sandbox_address(), EgressPolicy(Egress{}),
                               EgressPolicy(spec_.egress)));
  has_rules_ = true;
  return host_.link()->CreateVeth(slot_, network_namespace);
}

bool Building::Disconnect() {
  Status done;
  if (has_rules_) done = host_.Disconnect(slot_, spec_.egress);
  if (!done)
    LogError("the network of a sandbox that failed to start stays behind",
             {{"sandbox", spec_.id}, {"error", done.error().message()}});
  return done.has_value();
}

Sandbox Building::Finish(bool continued) {
  uint32_t address = connected() ? slot_.sandbox_address() : 0;
  slot_.Keep();
  record_file_.Keep();
  cgroup_.Keep();
  disk_.Keep();
  return Sandbox{{spec_.id, record_.pid, record_.created_at, continued},
                 std::move(process_),
                 std::move(network_namespace_),
                 std::move(disk_root_),
                 address,
                 spec_.egress};
}

}  // namespace caisson::engine
