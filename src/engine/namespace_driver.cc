#include "engine/namespace_driver.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/log.h"
#include "engine/boot_dir.h"
#include "engine/loop.h"
#include "engine/open_files.h"
#include "engine/pidfd.h"
#include "engine/record.h"
#include "engine/saved.h"
#include "engine/spec.h"
#include "engine/trust.h"

namespace caisson::engine {
namespace {

constexpr std::chrono::seconds kRecoverTimeout{10};
constexpr std::chrono::seconds kSettleTimeout{5};  // for all together
constexpr int kListenBacklog = 128;

std::chrono::milliseconds Left(Deadline deadline) {
  return std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline - std::chrono::steady_clock::now()));
}

}  // namespace

Capabilities NamespaceDriver::capabilities() const {
  return {.memory = criu_.has_value(),
          .why_no_memory = why_no_criu_,
          .network = network_.available,
          .open_files = HostOpenFiles()};
}

Status NamespaceDriver::OpenHost() {
  TRY_ASSIGN(host_, Host::Open(config_, network_, shelf_));
  own_network_.Reset(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own_network_) return FailErrno("opening this process's network namespace");
  return {};
}

Status NamespaceDriver::Prepare() {
  TRY(InstallEnvd());
  TRY(InstallCaBundle(config_));
  TRY_ASSIGN(shelf_, Shelf::Mount());
  if (mkdir(kMachineDirectory, 0700) && errno != EEXIST)
    return FailErrno("creating {}", kMachineDirectory);
  TRY(MakeBootDirectory(fmt::format("{}/slots", kMachineDirectory), "slots"));
  // Only now that the lock is ours: an earlier engine removes it as its last act.
  TRY(MakeBootDirectory(kSandboxesDir, RecordsName(config_.data_dir)));
  network_ = NetworkRoot::SetUp(config_, FindResidents());
  TRY(OpenHost());
  if (network_.available) {
    TRY(ForgetStrays());
    auto guard = EgressGuard::Create(config_, network_, host_->slots(), *host_->link());
    if (!guard) return tl::unexpected(std::move(guard).error().Context("preparing the resolver"));
    guard_ = std::move(*guard);
  }
  if (!network_.available)
    LogWarn("sandboxes have no network", {{"reason", network_.reason}});
  else if (!network_.warning.empty())
    LogWarn("network of sandboxes", {{"warning", network_.warning}});
  FindCriu();
  return {};
}

Result<std::unique_ptr<Driver>> NamespaceDriver::ForLauncher() const {
  auto driver = std::make_unique<NamespaceDriver>(config_);
  driver->network_ = network_;
  driver->shelf_ = shelf_;
  driver->criu_ = criu_;
  driver->why_no_criu_ = why_no_criu_;
  TRY(driver->OpenHost());
  RemoveLeftovers();  // of the launcher whose place this one takes
  return driver;
}

std::vector<Sandbox> NamespaceDriver::Recover() {
  std::set<std::string> ids;
  if (auto records = RecordFile::List()) ids.insert(records->begin(), records->end());
  if (auto cgroups = host_->cgroups().List()) ids.insert(cgroups->begin(), cgroups->end());
  if (auto slots = host_->slots().List())
    for (const auto& slot : *slots)
      if (slot.sandbox_id != kResolverId) ids.insert(slot.sandbox_id);
  std::vector<Sandbox> living;
  auto settle_end = std::chrono::steady_clock::now() + kSettleTimeout;
  for (const std::string& id : ids) {
    auto sandbox = Adopt(id);
    if (Status settled = sandbox ? SettleBy(settle_end, *sandbox) : Status(); !settled) {
      // A healthy one: what saves it goes on without us, and may take minutes.
      sandbox->unsettled = settled.error().code() == Code::kDeadlineExceeded;
      if (!sandbox->unsettled) sandbox = tl::unexpected(std::move(settled).error());
    }
    if (sandbox) {
      living.push_back(std::move(*sandbox));
      continue;
    }
    LogInfo("removing what is left of a sandbox",
            {{"sandbox", id}, {"reason", sandbox.error().message()}});
    auto deadline = std::chrono::steady_clock::now() + kRecoverTimeout;
    Status removed = Destroy(id, true, deadline);
    if (!removed)
      LogError("a dead sandbox cannot be removed",
               {{"sandbox", id}, {"error", removed.error().message()}});
  }
  RemoveLeftovers(/*all=*/true);
  CollectUnused();
  shelf_.RemoveEmpty();
  return living;
}

void NamespaceDriver::CleanUp() {
  guard_.reset();
  if (Status removed = NetworkRoot::TearDown(config_); network_.available && !removed)
    LogWarn("the network rules stay behind", {{"error", removed.error().message()}});
  host_->cgroups().RemoveIfEmpty();
  RemoveBootDirectory(kSandboxesDir, RecordsName(config_.data_dir));
}

Result<Sandbox> NamespaceDriver::Adopt(const std::string& id) {
  RecordFile file = RecordFile::Leftover(id);
  auto record = file.Read();
  bool ready = file.ready();
  file.Keep();
  if (!record) return tl::unexpected(std::move(record).error());
  if (!ready) return Fail(Code::kFailedPrecondition, "it was never ready");
  if (record->boot_id != host_->boot_id())
    return Fail(Code::kFailedPrecondition, "the host was restarted");
  // The descriptor first: if the number now means another process, the start time tells.
  TRY_ASSIGN(UniqueFd process, OpenProcess(record->pid));
  TRY_ASSIGN(uint64_t start_time, ReadStartTime(record->pid));
  if (start_time != record->start_time || WaitForExit(process.get(), {}))
    return Fail(Code::kNotFound, "its first process has ended");

  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), id));
  auto inside = cgroup.Processes();
  cgroup.Keep();
  if (!inside || std::find(inside->begin(), inside->end(), record->pid) == inside->end())
    return Fail(Code::kFailedPrecondition, "its process is not in its cgroup");
  TRY_ASSIGN(Slot slot, host_->slots().Adopt(record->slot, id));
  uint32_t address = network_.available ? slot.sandbox_address() : 0;
  slot.Keep();
  TRY_ASSIGN(UniqueFd disk, Disk::OpenInUse(id, record->loop));
  UniqueFd network(open(fmt::format("/proc/{}/ns/net", record->pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!network) return FailErrno("opening its network namespace");
  return Sandbox{{id, record->pid, record->created_at},
                 std::move(process),
                 std::move(network),
                 std::move(disk),
                 address,
                 record->egress,
                 record->why_frozen};
}

Status NamespaceDriver::Destroy(const std::string& id, bool keep_saved, Deadline deadline) {
  bool keep_disk = keep_saved && IsValidId(id) && SavedExists(id);
  TRY(RemoveLive(id, keep_disk, deadline));
  if (!SavedExists(id)) return shelf_.RemoveImage(id);
  return keep_saved ? Status() : DeleteSaved(id);
}

Status NamespaceDriver::RemoveLive(const std::string& id, bool keep_disk, Deadline deadline) {
  if (!IsValidId(id)) return Fail(Code::kInvalidArgument, "'{}' is not a sandbox id", id);
  // SECURITY: the slot goes last, and only when nothing inside lives any more: with it the uid
  // range may belong to another sandbox.
  Cgroup cgroup = Cgroup::Leftover(host_->cgroups(), id);
  RecordFile file = RecordFile::Leftover(id);
  auto record = file.Read();
  // With its last process its disk is unmounted, and what it had not written yet is written. If the
  // disk goes, too, what is under way gets the room that it had: the host may have no other.
  if (auto image = shelf_.FindImage(id); image && !keep_disk) (void)!truncate(image->c_str(), 0);
  if (record) (void)cgroup.LimitWrites(record->loop, 0);
  Status removed = cgroup.Remove(Left(deadline));
  cgroup.Keep();
  if (!removed) file.Keep();
  TRY(std::move(removed));
  if (!file.ready()) RemoveLeftovers();  // whoever built it may have been killed
  Slot slot;
  if (record)
    if (auto adopted = host_->slots().Adopt(record->slot, id)) slot = std::move(*adopted);
  Status cleared = slot ? host_->Disconnect(slot, record->egress) : Status();
  if (cleared) cleared = file.Remove();
  file.Keep();
  if (!cleared) slot.Keep();
  TRY(std::move(cleared));
  if (!record) return ReleaseSlot(id);
  slot.Release();
  if (!record->layers.empty()) CollectUnused();
  return {};
}

// The long way, for what died before its slot was written down.
Status NamespaceDriver::ReleaseSlot(const std::string& id) {
  TRY_ASSIGN(auto entries, host_->slots().List());
  for (const auto& entry : entries) {
    if (entry.sandbox_id != id) continue;
    auto slot = host_->slots().Adopt(entry.number, id);
    if (!slot) continue;
    Status cleared = host_->Disconnect(*slot, {});
    if (!cleared) slot->Keep();
    TRY(std::move(cleared));
  }
  return {};
}

std::vector<Resident> NamespaceDriver::FindResidents() const {
  std::vector<Resident> found;
  auto network = ParseCidr(config_.network_cidr);
  auto slots = SlotTable::Open(config_);
  if (!network || !slots) return found;
  auto entries = (*slots)->List();
  if (!entries) return found;
  for (const auto& [number, id] : *entries) {
    Resident resident{SandboxAddress(*network, number), {}};
    // What died while it was made has none, but may have had connections.
    RecordFile file = RecordFile::Leftover(id);
    if (auto record = file.Read(); record && record->slot == number)
      resident.egress = record->egress;
    file.Keep();
    found.push_back(std::move(resident));
  }
  return found;
}

// What ended while nobody was there, or while there was no network, has left connections.
Status NamespaceDriver::ForgetStrays() {
  const Cidr network = network_.rules.network;
  return host_->firewall().ForgetStrays(network, [&](uint32_t address) {
    return host_->slots().IsTaken(NumberOf(network, address));
  });
}

Status NamespaceDriver::WatchNetwork(EventLoop& loop, std::function<void(Blocked)> blocked) {
  if (!guard_) return {};
  auto processes = [this](const std::string& id) {
    std::vector<int> pids;
    auto cgroup = Cgroup::Open(host_->cgroups(), id);
    if (!cgroup) return pids;
    if (auto found = cgroup->Processes()) pids.assign(found->begin(), found->end());
    cgroup->Keep();
    return pids;
  };
  return guard_->Start(loop, processes, std::move(blocked));
}

void NamespaceDriver::Started(const Sandbox& sandbox) {
  if (guard_) guard_->Add(sandbox);
}

void NamespaceDriver::Ended(const Sandbox& sandbox) {
  if (guard_) guard_->Remove(sandbox);
}

Status NamespaceDriver::SetEgress(const Sandbox& sandbox, const Egress& egress) {
  TRY(CheckEgress(egress));
  // Written down first: should this process die in between, the next one enforces the new rules.
  TRY_ASSIGN(Record before, ReadRecord(sandbox.instance.id));
  Record after = before;
  after.egress = egress;
  TRY(RewriteRecord(after));
  // Where sandboxes have only their loopback, every rule is kept.
  Status done;
  if (guard_) done = guard_->Set(sandbox, egress);
  if (!done) (void)RewriteRecord(before);
  return done;
}

void NamespaceDriver::Kill(const Sandbox& sandbox, bool keep_disk) {
  // Its first process takes the whole pid namespace with it.
  SendSignal(sandbox.process.get(), SIGKILL);
  if (!keep_disk && sandbox.disk) Discard(sandbox.disk.get());
}

Result<std::vector<UniqueFd>> NamespaceDriver::MakeSockets(const Sandbox& sandbox, int family,
                                                           size_t count) {
  if (setns(sandbox.network.get(), CLONE_NEWNET))
    return FailErrno("entering the network of sandbox {}", sandbox.instance.id);
  std::vector<UniqueFd> sockets;
  int error = 0;
  while (sockets.size() < count && !error) {
    UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    error = fd ? 0 : errno;
    if (fd) sockets.push_back(std::move(fd));
  }
  // SECURITY: this process must never go on inside a sandbox's network.
  if (setns(own_network_.get(), CLONE_NEWNET)) std::abort();
  if (error) {
    errno = error;
    return FailErrno("making a socket in the network of sandbox {}", sandbox.instance.id);
  }
  return sockets;
}

Result<std::vector<UniqueFd>> NamespaceDriver::Dial(const Sandbox& sandbox, size_t count) {
  TRY_ASSIGN(auto sockets, MakeSockets(sandbox, AF_INET6, count));
  int no = 0;
  for (const UniqueFd& fd : sockets)
    if (setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)))
      return FailErrno("making a socket in the network of sandbox {}", sandbox.instance.id);
  return sockets;
}

Result<UniqueFd> NamespaceDriver::Listen(const Sandbox& sandbox, uint16_t port) {
  TRY_ASSIGN(auto sockets, MakeSockets(sandbox, AF_INET, 1));
  UniqueFd fd = std::move(sockets[0]);
  // Connections that a listener before this one had closed must not stand in the way.
  int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  // SECURITY: a socket belongs to the network it was made in for ever, so this is the sandbox's own
  // loopback: neither the host nor another sandbox has a way to it. Without SO_REUSEPORT nobody
  // inside can listen on the same port beside it.
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) ||
      listen(fd.get(), kListenBacklog)) {
    if (errno == EADDRINUSE)
      return Fail(Code::kAlreadyExists, "port {} of sandbox {} is taken by a process inside", port,
                  sandbox.instance.id);
    return FailErrno("listening on port {} of sandbox {}", port, sandbox.instance.id);
  }
  return fd;
}

Result<Usage> NamespaceDriver::Measure(const Sandbox& sandbox) {
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), sandbox.instance.id));
  Usage usage;
  Status measured = cgroup.Measure(usage);
  cgroup.Keep();
  TRY(std::move(measured));
  struct statvfs disk;
  if (fstatvfs(sandbox.disk.get(), &disk))
    return FailErrno("measuring the disk of sandbox {}", sandbox.instance.id);
  auto block = static_cast<int64_t>(disk.f_frsize);
  usage.disk_total_bytes = static_cast<int64_t>(disk.f_blocks) * block;
  usage.disk_used_bytes = static_cast<int64_t>(disk.f_blocks - disk.f_bfree) * block;
  return usage;
}

Result<Driver::Work> NamespaceDriver::MeasureWork(const Sandbox& sandbox) {
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), sandbox.instance.id));
  Work work;
  TRY_ASSIGN(work.cpu_ns, cgroup.CpuTime());
  work.waited_ns = cgroup.CpuWait();
  TRY_ASSIGN(int loop, LoopOf(sandbox.disk.get()));
  TRY_ASSIGN(work.written_bytes, LoopWritten(loop));
  return work;
}

Result<int64_t> NamespaceDriver::CpuTimeOfAll() { return host_->cgroups().CpuTime(); }

Status NamespaceDriver::StandBehind(const Sandbox& sandbox, bool behind) {
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), sandbox.instance.id));
  return cgroup.StandBehind(behind);
}

Status NamespaceDriver::LimitWrites(const Sandbox& sandbox, int64_t rate) {
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), sandbox.instance.id));
  TRY_ASSIGN(int loop, LoopOf(sandbox.disk.get()));
  return cgroup.LimitWrites(loop, rate);
}

Result<int64_t> NamespaceDriver::FreeDisk() {
  struct statvfs disk;
  if (statvfs(".", &disk)) return FailErrno("looking at the host's disk");
  return static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
}

Result<int64_t> NamespaceDriver::DiskTaken(const Sandbox& sandbox) {
  auto image = shelf_.FindImage(sandbox.instance.id);
  if (!image) return Fail(Code::kNotFound, "sandbox '{}' has no disk", sandbox.instance.id);
  return AllocatedBytes(*image);
}

Status NamespaceDriver::SetFrozen(const Sandbox& sandbox, bool frozen) {
  TRY_ASSIGN(Cgroup cgroup, Cgroup::Open(host_->cgroups(), sandbox.instance.id));
  return cgroup.SetFrozen(frozen);
}

ExitReason NamespaceDriver::WhyEnded(const Sandbox& sandbox) {
  auto status = ExitStatus(sandbox.process.get());
  if (status && !WIFSIGNALED(*status)) return ExitReason::kEnvdExited;
  auto usage = Measure(sandbox);
  bool killed_by_kernel = !status || WTERMSIG(*status) == SIGKILL;
  if (killed_by_kernel && usage && usage->oom_kills > 0) return ExitReason::kOutOfMemory;
  return status ? ExitReason::kEnvdKilled : ExitReason::kUnknown;
}

}  // namespace caisson::engine
