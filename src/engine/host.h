// What one process needs at hand to build and remove sandboxes. The engine's main process and each
// launcher open their own: some of it (locks, netlink sockets) must not be shared by a fork.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/cgroup.h"
#include "engine/child.h"
#include "engine/disk.h"
#include "engine/firewall.h"
#include "engine/layers.h"
#include "engine/network.h"
#include "engine/reserve.h"
#include "engine/seccomp.h"
#include "engine/slot.h"
#include "engine/steps.h"

namespace caisson::engine {

class Host {
 public:
  // `config` must outlive it. The current directory is the engine's.
  static Result<std::unique_ptr<Host>> Open(const Config& config, const NetworkRoot& network,
                                            const Shelf& shelf);

  const Config& config() const { return config_; }
  SlotTable& slots() { return *slots_; }
  CgroupParent& cgroups() { return *cgroups_; }
  const Shelf& shelf() const { return shelf_; }
  LayerMounts& layers() { return layers_; }
  BlankImages& blank_images() { return blank_images_; }
  const SeccompFilter& seccomp() const { return seccomp_; }
  const KernelPaths& kernel_paths() const { return kernel_paths_; }
  const MachineShare& share() const { return share_; }
  Steps& steps() { return steps_; }
  Reserve& reserve() { return reserve_; }
  const std::string& boot_id() const { return boot_id_; }
  // Null when sandboxes can have only their loopback here.
  HostLink* link() { return link_ ? &*link_ : nullptr; }
  // There whenever link() is.
  Firewall& firewall() { return *firewall_; }

  // Leaves nothing of a sandbox in the network of the host: call it when nothing inside lives any
  // more, before its slot is given back. SECURITY: what it had open must not become the next one's
  // with this slot, whose packets would pass by its own rules, and who would get the answers.
  Status Disconnect(const Slot& slot, const Egress& rules);

  // The directory of a template, open. SECURITY: the server is not trusted to name just any
  // directory: it must be <template_dir>/<name>/rootfs, or where that leads to.
  // `saved`: it stands in a manifest of ours, and may have been replaced by a newer one since.
  struct TemplateRoot {
    int fd = -1;
    std::string path;  // without links
  };
  Result<TemplateRoot> OpenTemplate(const std::string& root_dir, bool saved = false);
  // What will be the envd of the next sandbox: a path below the engine's directory.
  Result<std::string> EnvdProgram() const;
  // A file to be shown as /proc/meminfo; made when a size is asked for the first time.
  Result<std::string> MeminfoFile(int64_t memory_bytes) const;

 private:
  Result<UniqueFd> FindTemplate(const std::string& root_dir, const struct stat& wanted) const;
  Host(const Config& config, const Shelf& shelf)
      : config_(config),
        shelf_(shelf),
        steps_(config.engine_fail_at),
        reserve_(static_cast<size_t>(config.resume_reserve_mb) << 20) {}

  const Config& config_;
  std::unique_ptr<SlotTable> slots_;
  std::unique_ptr<CgroupParent> cgroups_;
  std::optional<HostLink> link_;
  std::optional<Firewall> firewall_;
  Shelf shelf_;
  LayerMounts layers_;
  BlankImages blank_images_;
  SeccompFilter seccomp_;
  KernelPaths kernel_paths_;
  MachineShare share_;
  Steps steps_;
  Reserve reserve_;
  std::string boot_id_;
  struct Template {
    UniqueFd root;
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::map<std::string, Template> templates_;  // by root_dir as asked for
};

// The boot directory (boot_dir.h) behind kSandboxesDir.
std::string RecordsName(const std::string& data_dir);
// Makes the engine's directory below data_dir if need be, and makes it the current one.
Status EnterEngineDirectory(const Config& config);
// Copies caisson-envd from beside the running program to envd-<digest>/envd, once per version, and
// points `envd` at it: a later build must not change what runs in sandboxes.
Status InstallEnvd();

}  // namespace caisson::engine
