// The built-in driver: a sandbox is a set of Linux namespaces with an overlay root, cgroup limits,
// a uid range of its own and a seccomp filter. It shares the host's kernel.
#pragma once

#include <memory>
#include <optional>

#include "base/config.h"
#include "engine/criu.h"
#include "engine/egress_guard.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/record.h"

namespace caisson::engine {

class NamespaceDriver : public Driver {
 public:
  // `config` must outlive it.
  explicit NamespaceDriver(const Config& config) : config_(config) {}

  // Begins to look whether the layers of snapshots are intact; goes on in a process of its own that
  // ends with this one. Between Prepare() and the end.
  void CheckLayersAhead() const;

  std::string_view name() const override { return "namespace"; }
  Capabilities capabilities() const override;

  Status Prepare() override;
  Result<std::unique_ptr<Driver>> ForLauncher() const override;
  std::vector<Sandbox> Recover() override;
  void CleanUp() override;
  Result<Sandbox> Create(const Spec& spec, Deadline deadline, int abort) override;
  Status Destroy(const std::string& id, bool keep_saved, Deadline deadline) override;
  void Kill(const Sandbox& sandbox, bool keep_disk) override;
  Result<std::vector<UniqueFd>> Dial(const Sandbox& sandbox, size_t count) override;
  Result<UniqueFd> Listen(const Sandbox& sandbox, uint16_t port) override;
  Result<Usage> Measure(const Sandbox& sandbox) override;
  Result<Work> MeasureWork(const Sandbox& sandbox) override;
  Result<int64_t> CpuTimeOfAll() override;
  Status StandBehind(const Sandbox& sandbox, bool behind) override;
  Status LimitWrites(const Sandbox& sandbox, int64_t rate) override;
  Result<int64_t> FreeDisk() override;
  Result<int64_t> DiskTaken(const Sandbox& sandbox) override;
  Status SetFrozen(const Sandbox& sandbox, bool frozen) override;
  ExitReason WhyEnded(const Sandbox& sandbox) override;
  Result<Saved> Pause(const std::string& id, bool memory, Deadline deadline) override;
  Result<Sandbox> Resume(const Spec& spec, bool memory, Deadline deadline, int abort) override;
  Result<Saved> Snapshot(const std::string& id, const std::string& snapshot_id, bool memory,
                         Deadline deadline) override;
  Status DeleteSaved(const std::string& id) override;
  std::optional<Saved> GetSaved(const std::string& id) override;
  std::vector<Saved> ListSaved() override;
  Status Settle(const Sandbox& sandbox) override;
  void TidyUp() override;
  bool PrepareAhead() override;
  Status WatchNetwork(EventLoop& loop, std::function<void(Blocked)> blocked) override;
  void Started(const Sandbox& sandbox) override;
  void Ended(const Sandbox& sandbox) override;
  Status SetEgress(const Sandbox& sandbox, const Egress& egress) override;
  Status SetLimits(const Sandbox& sandbox, const Limits& limits) override;
  Status GrowDisk(const std::string& id, int64_t bytes, Deadline deadline) override;

 private:
  // Sockets that live in the sandbox's network.
  Result<std::vector<UniqueFd>> MakeSockets(const Sandbox& sandbox, int family, size_t count);
  Status OpenHost();
  // Looks for a CRIU that works here; tried once per version and kernel.
  void FindCriu();
  Result<Sandbox> Thaw(const std::string& id, Deadline deadline);
  // A frozen sandbox's files become its saved state, so that it can be started cold.
  Status SaveFiles(const std::string& id, Deadline deadline);
  // Kills everything inside and removes every trace but its disk.
  // `keep_disk`: it belongs to what is saved.
  Status RemoveLive(const std::string& id, bool keep_disk, Deadline deadline);
  Result<Saved> FinishPause(const std::string& id);
  void CollectUnused();
  // Settle(), asked again until then.
  Status SettleBy(Deadline deadline, const Sandbox& sandbox);
  // The living sandbox behind a record of an earlier engine process, if all of it agrees.
  Result<Sandbox> Adopt(const std::string& id);
  Status ReleaseSlot(const std::string& id);
  // What the records say of the network of sandboxes.
  std::vector<Resident> FindResidents() const;
  Status ForgetStrays();

  const Config& config_;
  NetworkRoot network_;
  Shelf shelf_;
  std::unique_ptr<Host> host_;
  UniqueFd own_network_;  // to come back from a sandbox's
  std::optional<Criu> criu_;
  std::string why_no_criu_;
  // In the engine's main process only; uses host_.
  std::unique_ptr<EgressGuard> guard_;
};

}  // namespace caisson::engine
