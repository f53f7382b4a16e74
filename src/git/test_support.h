// For tests: real git in a directory of this machine instead of a sandbox.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/testing.h"
#include "git/git.h"

namespace caisson::git {

// Runs commands here, with an environment of their own.
class LocalRunner : public CommandRunner {
 public:
  explicit LocalRunner(std::string home) : home_(std::move(home)) {}
  Task<Result<sdk::CommandResult>> Run(sdk::Command command) override;

  std::vector<std::vector<std::string>> commands;  // all that were asked for
  // May answer instead of the program.
  std::function<std::optional<Result<sdk::CommandResult>>(const sdk::Command&)> instead;
  // Called after the program ended, before its result is given.
  std::function<void(const sdk::Command&)> after;

 private:
  std::string home_;
};

// Runs a program to its end: its output, standard error included. Fails the test if it fails, and
// after 60 s.
std::string Must(const std::vector<std::string>& argv, const std::string& cwd = "/");
// The same, whatever it ends with.
sdk::CommandResult Execute(const sdk::Command& command, const std::string& home);

// True if one of the arguments is this word.
bool Names(const sdk::Command& command, std::string_view word);

// A bare repository with one commit on main, in `dir`.
void MakeRemote(const std::string& dir);
// Commits a file to a branch of a bare repository, made from main if it is new.
void CommitTo(const std::string& remote, const std::string& branch, const std::string& file,
              const std::string& content);

}  // namespace caisson::git
