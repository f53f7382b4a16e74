// Where git runs: inside a sandbox. Tests put a directory of their own machine in its place.
#pragma once

#include "sdk/envd_client.h"

namespace caisson::git {

class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // As sdk::EnvdClient::Run.
  virtual Task<Result<sdk::CommandResult>> Run(sdk::Command command) = 0;
};

class EnvdRunner final : public CommandRunner {
 public:
  // `envd` outlives it.
  explicit EnvdRunner(sdk::EnvdClient& envd) : envd_(envd) {}
  Task<Result<sdk::CommandResult>> Run(sdk::Command command) override {
    return envd_.Run(std::move(command));
  }

 private:
  sdk::EnvdClient& envd_;
};

}  // namespace caisson::git
