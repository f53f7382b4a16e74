// All processes that envd started, and the reaping of everything that ends in the sandbox.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/async.h"
#include "envd/process.h"
#include "envd/settings.h"
#include "envd/spawn.h"
#include "envd/user.h"

namespace caisson::envd {

struct StartRequest {
  ProcessConfig config;
  std::optional<PtySize> pty;
  std::optional<std::string> tag;
  bool use_stdin = true;
  User user;
  std::optional<std::chrono::milliseconds> timeout;  // then the process tree is killed
};

// A process by number or by tag.
using Selector = std::variant<pid_t, std::string>;

class ProcessTable {
 public:
  // `settings` must outlive the table.
  ProcessTable(asio::any_io_executor executor, const Settings& settings);

  // Begins to reap. SIGCHLD is blocked in the calling thread and read from a descriptor.
  Status Begin();
  // Kills nothing; ends the coroutines of the table.
  Task<void> Stop();

  struct Started {
    std::shared_ptr<Process> process;
    std::unique_ptr<Subscriber> subscriber;  // misses nothing
  };
  // kInvalidArgument: no such cwd or program. kResourceExhausted: too many processes.
  Task<Result<Started>> Start(StartRequest request);

  // kNotFound with the contract's text.
  Result<std::shared_ptr<Process>> Find(const Selector& selector) const;

  // What is kept of a process for a late Connect.
  struct Ended {
    std::chrono::steady_clock::time_point forget;
    pid_t pid = 0;
    std::optional<std::string> tag;
    Event end_event;
  };
  // A process that ended less than retain_end_ms ago; nullptr if there is none.
  const Ended* FindEnded(const Selector& selector) const;
  // Keeps every end that is still there for another retain_end_ms: after a resume, clients need
  // time to come back.
  void KeepEnds();
  std::vector<std::shared_ptr<Process>> List() const;
  size_t size() const { return live_.size(); }

 private:
  Result<SpawnRequest> Prepare(const StartRequest& request) const;
  void Retain(const Process& process);
  Task<void> ReapLoop();
  void Reap();

  asio::any_io_executor executor_;
  const Settings& settings_;
  TaskGroup tasks_;
  std::optional<asio::posix::stream_descriptor> signals_;
  std::map<pid_t, std::shared_ptr<Process>> live_;
  std::map<pid_t, std::shared_ptr<Process>> unreaped_;
  std::deque<Ended> ended_;
};

}  // namespace caisson::envd
