// Building one sandbox: a pipeline of owned resources. If any step fails, everything made so far is
// taken down again in reverse order, and nothing is left.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "engine/cgroup.h"
#include "engine/disk.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/record.h"
#include "engine/slot.h"

namespace caisson::engine {

class Creation {
 public:
  // Both must outlive it. `abort`: see Driver::Create.
  Creation(Host& host, const Spec& spec, Deadline deadline, int abort);
  // Unless Run() succeeded.
  ~Creation();
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  Result<Sandbox> Run();

 private:
  // One per Step, in its order.
  Status TakeSlot();
  Status MakeRecord();
  Status MakeCgroup();
  Status MakeDisk();
  Status Clone();
  Status Identify();
  Status Connect();
  Status MakeRoot();
  Status Release();
  Status Boot();

  Status RunSteps();
  void Tell(std::string_view word, int fd);
  Status SendBootData();
  Status AwaitReady();
  // Waits for `events` on the boot socket; fails at the deadline or when nobody wants us any more.
  Status Wait(short events);
  // If the child failed, that is why a step of ours did, and it explains more.
  Error PreferChildsWords(Error error);
  // What the child or envd said after "E", or what the kernel knows of its end.
  Error Explain(std::string said);
  void KillChild();

  Host& host_;
  const Spec& spec_;
  Deadline deadline_;
  int abort_;

  Slot slot_;
  RecordFile record_file_;
  Record record_;
  Cgroup cgroup_;
  Disk disk_;
  UniqueFd process_;  // pidfd of the child; it is killed with us
  UniqueFd boot_;
  UniqueFd user_namespace_;
  UniqueFd network_namespace_;
  UniqueFd disk_root_;
  UniqueFd root_;
};

}  // namespace caisson::engine
