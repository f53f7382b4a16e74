// The tools of the built-in agent. They act in the sandbox as its user; what a model asks for is
// never trusted with more.
#pragma once

#include <boost/json/array.hpp>

#include "sdk/envd_client.h"
#include "work/loop_guard.h"

namespace caisson::work {

// As chat completions want them.
const json::array& ToolDefinitions();

// `text` with the one occurrence of `old_text` replaced. kInvalidArgument, in words for a model, if
// there is none or more than one.
Result<std::string> ReplaceOnce(std::string_view text, std::string_view old_text,
                                std::string_view new_text);
// Lines `from` (the first is 1) and as many as `count`; 0 = all.
std::string LinesOf(std::string_view text, int64_t from, int64_t count);

class LoopTools {
 public:
  // Directory and variables are those of `like`, `tag` names the processes it starts. `envd`
  // outlives it.
  LoopTools(sdk::EnvdClient& envd, const sdk::Command& like, LoopLimits limits, std::string tag)
      : envd_(envd), workdir_(like.cwd), env_(like.env), limits_(limits), tag_(std::move(tag)) {}

  // Never fails: what goes wrong is told to the model. Errors are those of the connection to the
  // sandbox, after which nobody knows what has happened.
  Task<Result<ToolOutcome>> Run(ToolCall call, std::chrono::milliseconds left);
  // Ends what a server before this one has left running.
  Task<Status> EndLeftovers();

 private:
  using Input = json::object;
  Task<Result<ToolOutcome>> Do(std::string name, Input input, std::chrono::milliseconds left);
  Task<Result<ToolOutcome>> Read(Input input);
  Task<Result<ToolOutcome>> Write(Input input);
  Task<Result<ToolOutcome>> Edit(Input input);
  Task<Result<ToolOutcome>> Bash(Input input, std::chrono::milliseconds left);
  Task<Result<ToolOutcome>> Grep(Input input, std::chrono::milliseconds left);
  Task<Result<ToolOutcome>> Glob(Input input, std::chrono::milliseconds left);
  Task<Result<ToolOutcome>> Screenshot(Input input, std::chrono::milliseconds left);
  Task<Result<sdk::CommandResult>> Execute(std::vector<std::string> argv,
                                           std::chrono::milliseconds timeout);
  Task<Result<std::string>> ReadText(std::string path);

  sdk::EnvdClient& envd_;
  std::string workdir_;
  std::map<std::string, std::string> env_;
  LoopLimits limits_;
  std::string tag_;
};

}  // namespace caisson::work
