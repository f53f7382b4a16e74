// A program at a pseudo-terminal of a sandbox. It is known by a tag, by which whoever comes later
// finds it again; it goes on when nobody follows it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sdk/envd_client.h"
#include "sdk/process_stream.h"

namespace caisson::sdk {

struct PtySize {
  int64_t cols = 80, rows = 24;
};

struct PtyCommand {
  std::vector<std::string> argv = {"/bin/bash", "-i", "-l"};
  std::string cwd;  // "" = the template's
  std::map<std::string, std::string> env;
  std::string user = "user";
  PtySize size;
};

class Pty {
 public:
  // Reaches nothing until Start() or Follow() is done.
  Pty(const EnvdClient& client, std::string tag)
      : transport_(client.transport_), tag_(std::move(tag)) {}

  // On failure nothing runs, unless the sandbox cannot be reached to end it.
  Task<Status> Start(PtyCommand command);
  // kNotFound if it does not run any more.
  Task<Status> Follow();
  int64_t pid() const { return pid_; }

  // What happens next: kPty with bytes, kEnded, kAlive. kUnavailable: the connection was lost,
  // the program may go on.
  Task<Result<ProcessEvent>> Next();

  // ---- these need no Start() or Follow() --------------------------------------------
  // Returns when the program's side has taken all of it.
  Task<Status> Send(std::string bytes);
  Task<Status> Resize(PtySize size);
  // The program and everything it started. kNotFound if there is none.
  Task<Status> Kill();

 private:
  Task<Status> Open(std::string method, std::string user, boost::json::object message);

  std::shared_ptr<Transport> transport_;
  std::string tag_;
  int64_t pid_ = 0;
  std::optional<ProcessStream> stream_;
};

}  // namespace caisson::sdk
