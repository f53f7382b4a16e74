// The built-in agent: asks the model, does in the sandbox what it asks for, tells it what came of
// it, until the model ends its turn. It runs in the server, so the model's key stays there; after a
// restart it goes on from its last turn. docs/agents.md.
#pragma once

#include "sdk/envd_client.h"
#include "work/chat_model.h"
#include "work/platform.h"

namespace caisson::work {

// The program of the adapter "builtin": argv = {this, the agent's configuration}, the prompt is the
// standard input. Its output is what MakeBuiltinAdapter()'s parser reads.
inline constexpr std::string_view kBuiltinProgram = "caisson:agent";

// Whose work it is.
struct LoopSubject {
  std::string owner_id, execution_id, sandbox_id;
  std::optional<std::string> agent_id, task_id;
};

class AgentLoop {
 public:
  // `platform` outlives it.
  AgentLoop(asio::any_io_executor executor, Platform platform);

  static bool Runs(const sdk::Command& command) {
    return !command.argv.empty() && command.argv[0] == kBuiltinProgram;
  }
  // To its end, or until it sleeps (AgentReport::sleeps_until): begins, or goes on. `on_output`
  // gets all of its output from the first byte, `on_text` what the model says while it says it,
  // before that is output. Errors: the model or the sandbox cannot be reached now; the next attempt
  // goes on.
  Task<Result<sdk::CommandResult>> Run(LoopSubject subject, sdk::EnvdClient& envd,
                                       sdk::Command command, OnText on_text = {});
  // The next one of this execution in this sandbox starts anew.
  Task<Status> Forget(std::string execution_id, std::string sandbox_id);

 private:
  Platform platform_;
  ChatModel model_;
};

}  // namespace caisson::work
