// Starting a sandbox cold: its first process is made, makes itself at home (child.h) and becomes
// envd.
#pragma once

#include <string>
#include <string_view>

#include "engine/building.h"

namespace caisson::engine {

class Creation : Building {
 public:
  Creation(Host& host, const Spec& spec, const Origin& origin, Deadline deadline, int abort)
      : Building(host, spec, origin, deadline, abort) {}

  Result<Sandbox> Run();

 private:
  // One per Step, in its order, with those of Building.
  Status Clone();
  Status MapIds();
  Status Connect();
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

  UniqueFd boot_;
  UniqueFd user_namespace_;
};

}  // namespace caisson::engine
