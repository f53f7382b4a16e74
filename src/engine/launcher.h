// Launchers: the processes that build and remove sandboxes, each one job at a time, so that a slow
// one delays nobody and nothing ever forks from a process with threads.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/event_loop.h"
#include "engine/process.h"
#include "engine/protocol.h"

namespace caisson::engine {

// The main function of a launcher: takes jobs from `socket` until it closes.
int RunLauncher(const Driver& driver, int socket);

struct Job {
  std::string id;     // of the sandbox
  std::string group;  // Spec::group; "" is a group of its own
  Message request;    // of one of the slow calls (engine.h)
  Deadline deadline;
  // The launcher's answer, or why there is none. `died`: the launcher did, so something of the
  // sandbox may be left.
  std::function<void(Result<Message> answer, bool died)> done;
  // Submit() finds out. Removing makes room; slow is what reads or writes all of a sandbox.
  enum class Kind { kRemoval, kQuick, kSlow } kind = Kind::kQuick;
};

// Hands jobs to launchers, and replaces launchers that die. Removals come first; of the others that
// wait, the first one of the group that has the fewest of its kind under way. One launcher is
// always left for what is not slow.
class LauncherPool {
 public:
  // `start` forks a launcher that serves the given socket.
  using Start = std::function<Result<Forked>(int socket)>;
  LauncherPool(EventLoop& loop, size_t count, size_t max_queue, Start start);

  Status StartAll();
  // kResourceExhausted when too many wait already, unless it is `urgent`.
  Status Submit(Job job, bool urgent);
  // Nobody wants the sandbox any more. True: no launcher had begun, the job is gone. False: its
  // launcher is told to stop waiting, and the job ends in its usual way.
  bool Cancel(const std::string& id);

  // When Expire() wants to be called next.
  Deadline NextDeadline() const;
  // Ends what has waited or run for too long.
  void Expire();

 private:
  struct Launcher {
    Forked process;
    UniqueFd socket;
    std::unique_ptr<Job> job;
    Deadline started_at;  // or, without a socket, when it could not be
  };

  Status StartOne(size_t index);
  static bool IsFree(const Launcher& launcher);
  size_t FindFree(const Job& job) const;  // there is one
  // Which job of the queue is next; the end if none may begin now.
  std::deque<Job>::iterator FindNext();
  void Dispatch();
  void OnReadable(size_t index);
  void Replace(size_t index);
  void Restart(size_t index);

  EventLoop& loop_;
  size_t max_queue_;
  Start start_;
  std::vector<Launcher> launchers_;
  std::deque<Job> queue_;
};

}  // namespace caisson::engine
