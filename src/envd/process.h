// One process that envd started: its output, its input, its end.
#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/fd.h"
#include "envd/fifo_lock.h"
#include "envd/output.h"
#include "envd/pty.h"
#include "envd/settings.h"

namespace caisson::envd {

// What to run, as the client said it; shown again by List.
struct ProcessConfig {
  std::string cmd;
  std::vector<std::string> args;
  EnvVars envs;
  std::optional<std::string> cwd;
};
boost::json::object ToJson(const ProcessConfig& config);

// The end of a process in the words of Go's os/exec, which clients compare.
struct ExitInfo {
  int32_t code = 0;    // -1 when a signal ended it
  bool exited = true;  // by itself
  std::string status;  // "exit status 3", "signal: killed"
};
ExitInfo DescribeExit(int wait_status);

// Events as JSON text: {"event":{...}}.
Event StartEvent(pid_t pid);
Event EndEvent(const ExitInfo& exit);
Event KeepaliveEvent();

// The descriptors on envd's side; those not wanted are empty.
struct ProcessPipes {
  UniqueFd stdin_pipe;
  UniqueFd stdout_pipe;
  UniqueFd stderr_pipe;
  UniqueFd pty;
};

class Process : public std::enable_shared_from_this<Process> {
 public:
  // `limits` outlive it; a change of the rate of output holds from the next read on.
  Process(asio::any_io_executor executor, pid_t pid, ProcessConfig config,
          std::optional<std::string> tag, ProcessPipes pipes, const Limits& limits);

  // Starts to read the output. With `deadline`, the whole process tree is killed at that time;
  // time in which the sandbox was frozen does not count.
  // `on_end` runs once, after the end event was published.
  void Run(TaskGroup& tasks, std::optional<std::chrono::steady_clock::time_point> deadline,
           std::function<void()> on_end);
  // The reaper's news.
  void SetExit(int wait_status);

  pid_t pid() const { return pid_; }
  const ProcessConfig& config() const { return config_; }
  const std::optional<std::string>& tag() const { return tag_; }
  OutputHub& output() { return *output_; }
  bool is_pty() const { return pty_.has_value(); }
  // Set when the process is over and all its output was published.
  const Event& end_event() const { return end_event_; }
  bool timed_out() const { return timed_out_; }

  enum class Input { kStdin, kPty };
  // Returns when everything is in the pipe. Writes happen in the order of the calls. kInternal when
  // the process has no such input (any more).
  Task<Status> Write(Input kind, std::string data);
  // Ends stdin after what was written before. Closing twice is fine; a terminal is kUnknown.
  Task<Status> CloseStdin();
  Status Resize(PtySize size);
  // To the process alone. After SIGTERM and SIGKILL the end no longer waits for others that hold
  // the output open.
  Status Signal(int signal);
  // The process and everything it started.
  void Kill();

 private:
  enum class Output { kStdout, kStderr, kPty };
  using Descriptor = asio::posix::stream_descriptor;

  static Task<void> Supervise(std::shared_ptr<Process> self, std::function<void()> on_end);
  static Task<void> Follow(std::shared_ptr<Process> self, Descriptor& source, Output kind);
  void TimeOut();
  // Reads once what is there and publishes it; false at the end of the output.
  bool ReadOnce(Descriptor& source, Output kind);
  // Waits until the rate of output allows another read, but not long: ask again. False: read now.
  Task<bool> WaitForRate();
  void DrainNow(std::optional<Descriptor>& source, Output kind);
  int64_t OutputRate() const { return limits_.output_kbps << 10; }  // bytes per second; 0 = any
  bool IsOver() const { return wait_status_ && (readers_ == 0 || signaled_); }
  std::optional<Descriptor> Adopt(UniqueFd fd);

  asio::any_io_executor executor_;
  pid_t pid_;
  ProcessConfig config_;
  std::optional<std::string> tag_;
  std::shared_ptr<OutputHub> output_;
  std::optional<Descriptor> stdin_, stdout_, stderr_, pty_;
  FifoLock input_lock_;
  asio::steady_timer changed_;  // wakes Supervise()
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::optional<int> wait_status_;
  Event end_event_;
  int readers_ = 0;
  const Limits& limits_;                               // as they are now
  std::chrono::steady_clock::time_point next_read_{};  // not before, when the rate is limited
  bool signaled_ = false;
  bool timed_out_ = false;
};

}  // namespace caisson::envd
