// The command line of `caisson session`, with CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace caisson::cli {

class SessionOptions {
 public:
  void AddTo(CLI::App& app);
  Result<SessionCommand> Build(const Environment& environment);

 private:
  CLI::App& AddOne(CLI::App& app, const char* name, const char* help, SessionAction action);

  std::string url_;
  bool json_ = false;
  std::string id_;
  CreateSession create_;
  ListSessions list_;
  SendMessage send_;
  bool now_ = false;
  StopAnswer stop_;
  ShowHistory history_;
  DeleteSessions delete_;
  SessionAction action_;
};

}  // namespace caisson::cli
