// The command lines of `caisson agent`, `caisson task` and `caisson run`, with CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace caisson::cli {

class WorkOptions {
 public:
  void AddAgentsTo(CLI::App& app);
  void AddTasksTo(CLI::App& app);
  void AddRunsTo(CLI::App& app);
  Result<WorkCommand> Build(const Environment& environment);

 private:
  void AddCommon(CLI::App& app, const char* footer);
  void Choose(CLI::App& app, WorkAction action);
  CLI::App& AddOne(CLI::App& app, const char* name, const char* help, WorkAction action);

  std::string url_;
  bool json_ = false;
  std::string id_;
  AddAgent agent_;
  std::vector<std::string> env_;
  RemoveAgents remove_;
  CreateTask task_;
  bool later_ = false;
  ListTasks tasks_;
  PauseTask pause_;
  RetryRun retry_;
  ListRuns runs_;
  WorkAction action_;
};

}  // namespace caisson::cli
