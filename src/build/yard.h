// Everything about builds, put together.
#pragma once

#include "build/build_flow.h"
#include "build/builds.h"
#include "build/command_runner.h"
#include "build/local_workbench.h"
#include "build/previews.h"
#include "build/screenshots.h"

namespace caisson::build {

class Yard {
 public:
  // All outlive it. `port`: of the server, where previews are served.
  Yard(asio::any_io_executor executor, work::Platform platform, work::Sandboxes& sandboxes,
       work::StartLimit& starts, work::AgentLoop& loop, ModelAccess models, uint16_t port);

  // Before the workflow starts. Fails if a setting is wrong.
  Status Check() const;
  void Start() { previews.Start(); }
  Task<void> Stop();

 private:
  const Config& config_;
  LocalWorkbench workbench_;
  BuildLogs logs_;
  Result<std::map<std::string, Tier>> tiers_;
  BuildQueue queue_;
  Runners runners_;
  Screenshots screenshots_;

 public:
  BuildFlow flow;
  Builds builds;
  Removals removals;
  Previews previews;
  const std::string& pictures() const { return screenshots_.directory(); }
};

}  // namespace caisson::build
