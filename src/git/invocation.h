// One operation while it runs: its git commands, hardened the same way, repeated where that is
// right, and what will be told about it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "git/git.h"

namespace caisson::git {

// One git command. The fields besides `argv` are optional.
struct Call {
  std::vector<std::string> argv;  // behind "git" and our own settings
  std::string input;
  std::map<std::string, std::string> env;
  std::chrono::milliseconds timeout{0};  // 0 = config.git_timeout_ms
  size_t max_output = 4 << 20;
  bool main = false;        // what the operation is recorded as
  bool remote = false;      // talks to the remote, tells its progress
  bool repeat = true;       // when the network lets down a remote one
  bool in_checkout = true;  // false: there is none yet
};

class Invocation {
 public:
  Invocation(CommandRunner& runner, const Config& config, const std::string& path,
             const Observer& observer, std::string name);

  // Runs it; an exit code other than 0 is a result.
  Task<Result<sdk::CommandResult>> Try(Call call);
  // Its output; an exit code other than 0 is an error with git's own words.
  Task<Result<std::string>> Run(Call call);
  // Its output without the end of the line.
  Task<Result<std::string>> Line(std::vector<std::string> argv);
  // True for exit code 0, false for 1; anything else is an error.
  Task<Result<bool>> Ask(std::vector<std::string> argv);
  // A program other than git.
  Task<caisson::Status> RunPlain(std::vector<std::string> argv);

  // Makes an error of a command that failed, and notes it for the record.
  Error Explain(const Call& call, const sdk::CommandResult& result);
  // The pause before attempt number `next`, which begins at 2.
  Task<void> PauseBefore(int next);
  void Report(std::string text);
  // The operation goes well, but what it found is a conflict.
  void NoteConflict() { conflict_ = true; }
  void Begin();
  void Finish(const Error* error);

  const Config& config() const { return config_; }
  const std::string& path() const { return path_; }
  Operation& operation() { return operation_; }

 private:
  sdk::Command Harden(const Call& call);
  Task<Result<sdk::CommandResult>> Once(const Call& call);
  Task<void> RemoveLocks();

  CommandRunner& runner_;
  const Config& config_;
  const std::string& path_;
  const Observer& observer_;
  Operation operation_;
  ProgressParser progress_;
  bool conflict_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace caisson::git
