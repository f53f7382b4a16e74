// The command lines of `caisson key`, `caisson user`, `caisson github-token` and `caisson login`.
// One of the places with CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace caisson::cli {

// "NAME=VALUE" each.
Result<StringMap> ParsePairs(const std::vector<std::string>& pairs, std::string_view option);

class AccountOptions {
 public:
  void AddKeysTo(CLI::App& app);
  void AddUsersTo(CLI::App& app);
  void AddGithubTokensTo(CLI::App& app);
  void AddLoginTo(CLI::App& app);
  Result<AccountCommand> Build(const Environment& environment);

 private:
  void AddCommon(CLI::App& app, const char* footer);
  void Choose(CLI::App& app, AccountAction action);
  CLI::App& AddNamed(CLI::App& app, const char* name, const char* help, const char* what,
                     AccountAction action);

  std::string url_;
  bool json_ = false;
  std::string name_;
  std::string user_;
  bool mine_ = false;
  std::string role_ = "member";
  bool password_ = false;
  std::vector<std::string> limits_;
  AccountAction action_;
};

}  // namespace caisson::cli
