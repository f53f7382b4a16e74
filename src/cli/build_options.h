// The command line of `caisson build`, with CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace caisson::cli {

class BuildOptions {
 public:
  void AddTo(CLI::App& app);
  Result<BuildCommand> Build(const Environment& environment);

 private:
  CLI::App& Add(CLI::App& app, const char* name, const char* help, BuildAction action);

  std::string url_;
  bool json_ = false;
  std::string id_;
  CreateBuild create_;
  std::vector<std::string> env_;
  ListBuilds list_;
  ShowBuildLog log_;
  RollBackBuild rollback_;
  DiffBuild diff_;
  std::string file_;
  BuildAction action_;
};

}  // namespace caisson::cli
