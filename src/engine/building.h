// What every way to start a sandbox has in common, cold (creation.h) or from saved memory
// (restoration.h): a pipeline of owned resources. If any step fails, everything made so far is
// taken down again in reverse order, and nothing is left.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/cgroup.h"
#include "engine/disk.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/record.h"
#include "engine/slot.h"

namespace caisson::engine {

// Where the files of a new sandbox come from.
struct Origin {
  std::string root_dir;             // the template's, as it was saved; "" = Spec::root_dir
  std::vector<std::string> layers;  // above the template, bottom first
  bool own_disk = false;            // it was paused: its disk is still there
  std::string boot_id;              // for the sandbox to see; "" = a new one
};

class Building {
 protected:
  // All must outlive it. `abort`: see Driver::Create.
  Building(Host& host, const Spec& spec, const Origin& origin, Deadline deadline, int abort);
  // Takes down what was made, unless Finish() was called.
  ~Building();
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

  Status TakeSlot();
  Status MakeRecord();
  Status MakeCgroup();
  Status MakeDisk();
  // `user_namespace`: see MountRoot().
  Status MakeRoot(int user_namespace);
  // Opens the network namespace, writes the record: `record_.pid` is known.
  Status Identify();
  bool connected() const { return host_.link() != nullptr; }
  // Gives the sandbox with this network namespace its rules, then its link; nothing if sandboxes
  // have no network here.
  Status MakeLink(int network_namespace);
  std::chrono::milliseconds Left() const;
  // The sandbox lives on by itself.
  Sandbox Finish(bool continued);

  Host& host_;
  const Spec& spec_;
  const Origin& origin_;
  Deadline deadline_;
  int abort_;

  Host::TemplateRoot template_;
  Slot slot_;
  RecordFile record_file_;
  Record record_;
  Cgroup cgroup_;
  Disk disk_;
  UniqueFd process_;  // pidfd of the first process; it is killed with us
  UniqueFd network_namespace_;
  UniqueFd disk_root_;
  UniqueFd root_;

 private:
  void KillProcess();
  bool Disconnect();

  bool has_rules_ = false;  // in the firewall, and perhaps a link
};

}  // namespace caisson::engine
