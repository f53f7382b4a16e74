// Starting a sandbox from saved memory: CRIU makes its namespaces and processes, we give it the
// root, the network and the limits.
#pragma once

#include "engine/building.h"
#include "engine/criu.h"
#include "engine/manifest.h"
#include "engine/stage.h"

namespace caisson::engine {

class Restoration : Building {
 public:
  // All must outlive it.
  Restoration(Host& host, const Spec& spec, const Origin& origin, const Manifest& manifest,
              const Criu& criu, Deadline deadline, int abort)
      : Building(host, spec, origin, deadline, abort), manifest_(manifest), criu_(criu) {}

  Result<Sandbox> Run();

 private:
  Status RunSteps();
  Status PrepareRoot();
  Status Restore();
  Status CheckRoot();
  Status SetUpNetwork(int pid);
  // Puts the source of each mount where CRIU finds it.
  Result<std::vector<std::pair<std::string, std::string>>> Sources(Stage& stage) const;

  const Manifest& manifest_;
  const Criu& criu_;
};

}  // namespace caisson::engine
