// A command in a sandbox that outlives the server which started it. Its output and its exit status
// go to files in the sandbox; whoever comes next reads them from the beginning, so nothing is lost
// and nothing is started twice, also when it ended while nobody was looking.
#pragma once

#include <functional>

#include "sdk/envd_client.h"

namespace caisson::work {

// Runs a short command in the sandbox: sdk::EnvdClient::Run.
using CommandRunner = std::function<Task<Result<sdk::CommandResult>>(sdk::Command)>;

// Starts `command` unless one with this `name` was started before, and follows it to its end.
// `on_output` gets all of its output from the first byte, also what was given to a server before.
// Being canceled ends the following, not the command: EndDetached() does that.
// Time in which the sandbox is paused does not count for its `timeout`.
// Needs sh, cat, mkdir, mv, sleep and setsid in the sandbox.
Task<Result<sdk::CommandResult>> RunDetached(CommandRunner run, std::string name,
                                             sdk::Command command);
// Starts it without following it: a server. Unless one with this name was started before.
Task<Status> StartDetached(CommandRunner run, std::string name, sdk::Command command);
// How one that was started is now, and the last `max_output` bytes of what each of its streams
// said, one after the other. kNotFound if there is none of this name.
struct DetachedState {
  bool running = false;
  int exit_code = 0;  // of one that has ended
  std::string output;
};
Task<Result<DetachedState>> AskDetached(CommandRunner run, std::string name, std::string user,
                                        size_t max_output);
// Ends it and everything in its session, and forgets it: the next one of this name starts anew.
Task<Status> EndDetached(CommandRunner run, std::string name, std::string user);
// Removes its files when it has ended; what it left running goes on.
Task<Status> ForgetDetached(CommandRunner run, std::string name, std::string user);

}  // namespace caisson::work
