// A client of the envd inside one sandbox: commands and files, over the protocol that E2B's SDKs
// speak. It does not know whether the sandbox is ours or another server's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/time.h"
#include "http/client.h"

namespace caisson::sdk {

// How to reach the envd of one sandbox.
class Transport {
 public:
  virtual ~Transport() = default;
  // A fresh connection.
  virtual Task<Result<std::unique_ptr<http::ClientConnection>>> Connect() = 0;
  // What every request to it needs: the host, the token, the headers that name the sandbox.
  virtual http::Headers RequestHeaders() const = 0;
};

enum class Stream { kStdout, kStderr };

struct Command {
  std::vector<std::string> argv;  // SECURITY: never put together into one text for a shell
  std::string cwd;                // "" = the template's
  std::map<std::string, std::string> env;
  std::string user = "user";
  std::string stdin_text;                      // then end of file; "" = nothing to read
  std::chrono::milliseconds timeout{300'000};  // the whole process tree is ended after it
  size_t max_output = 1 << 20;                 // of each stream kept in the result; the rest is cut
  // Called with every piece as it comes, whole UTF-8 characters only. Must not throw.
  std::function<void(Stream, std::string_view)> on_output;
  // Called once with the pid in the sandbox.
  std::function<void(int64_t)> on_started;
  std::string tag;  // a name by which the process can be found again, "" = none
};

struct CommandResult {
  int exit_code = 0;        // 128 + n if it was ended by signal n
  std::string stdout_text;  // what is not UTF-8 is U+FFFD
  std::string stderr_text;
  std::chrono::milliseconds duration{0};
  bool timed_out = false;
  bool truncated = false;
};

struct FileInfo {
  std::string name;
  std::string path;
  bool is_directory = false;
  int64_t size = 0;
  std::string mode;  // "-rw-r--r--"
  std::optional<Time> modified_at;
};

struct ProcessInfo {
  int64_t pid = 0;
  std::string tag;
  std::vector<std::string> argv;
};

class EnvdClient {
  friend class Pty;          // pty.h
  friend class TunnelRelay;  // tunnel_relay.h

 public:
  EnvdClient() = default;  // reaches nothing: only to be assigned to
  explicit EnvdClient(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  // An exit code other than 0 is a result, not an error. kUnavailable: the connection was lost
  // before the end was told, the command may have run. Cancelling ends the process and everything
  // it started, before it returns. At the end of `timeout` the same happens, and `timed_out` is
  // set.
  Task<Result<CommandResult>> Run(Command command);
  // Follows a process that was started before, by its tag; kNotFound if it does not run.
  Task<Result<CommandResult>> Follow(std::string tag, Command how);
  Task<Result<std::vector<ProcessInfo>>> ListProcesses();
  // The process and everything it started. kNotFound if there is none.
  Task<Status> Kill(int64_t pid);

  // Whole files; kOutOfRange above `max_bytes`, kNotFound if there is none. Parents are made.
  Task<Result<std::string>> ReadFile(std::string path, size_t max_bytes);
  Task<Status> WriteFile(std::string path, std::string content);
  // Streams, for files of any size: `next` gives "" at the end; `take` is given every piece.
  Task<Status> Upload(std::string path, std::function<Task<Result<std::string>>()> next);
  // The first call of `take` comes after the file was found, also for an empty one ("").
  Task<Status> Download(std::string path, std::function<Task<Status>(std::string_view)> take);
  Task<Result<std::vector<FileInfo>>> ListFiles(std::string path, int depth);
  Task<Result<FileInfo>> Stat(std::string path);
  Task<Status> MakeDirectory(std::string path);  // one that exists already is fine
  Task<Status> Remove(std::string path);         // with everything below; what is not there is fine

 private:
  // Shared with the calls under way, which may outlive the client.
  std::shared_ptr<Transport> transport_;
};

}  // namespace caisson::sdk
