// The shells that users open in their sandboxes. A row is there for each, so that after a restart
// of the server everybody finds theirs again; output is kept in memory only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "events/log.h"
#include "terminal/terminal.h"
#include "work/sandboxes.h"

namespace caisson::terminal {

class Terminals;

// A place at a shell. Given up when it is destroyed; nobody at a shell for long ends it.
class Seat {
 public:
  Seat(Terminals& all, std::shared_ptr<Terminal> terminal, bool reattached);
  ~Seat();
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  const store::TerminalRow& row() const { return terminal_->row; }
  bool reattached() const { return reattached_; }  // the shell was there before
  // The viewer is told everything from now on, until Leave().
  void Attach(Viewer& viewer);
  void Leave();
  void Drained() { terminal_->Drained(); }
  Task<Status> Send(std::string input);
  Task<Status> Resize(sdk::PtySize size);

 private:
  Terminals& all_;
  std::shared_ptr<Terminal> terminal_;
  const bool reattached_;
  Viewer* viewer_ = nullptr;
};

class Terminals {
 public:
  // All outlive it.
  Terminals(asio::any_io_executor executor, Options options, store::Store& store, events::Log& log,
            work::Sandboxes& sandboxes);
  ~Terminals();

  void Start();
  Task<void> Stop();
  // Everybody who looks is told that the server stops.
  void EndViewers();

  // A new shell. kFailedPrecondition: the sandbox does not run; kResourceExhausted: it has as many
  // as it may. In all of these someone else's sandbox is kNotFound.
  Task<Result<std::unique_ptr<Seat>>> Open(std::string owner_id, std::string sandbox_id,
                                           sdk::PtyCommand command);
  // The same shell again. kNotFound if it has ended.
  Task<Result<std::unique_ptr<Seat>>> Reopen(std::string owner_id, std::string sandbox_id,
                                             std::string id);
  struct Shown {
    store::TerminalRow row;
    size_t viewers = 0;
  };
  // Those that run, oldest first; wakes nothing.
  Task<Result<std::vector<Shown>>> List(std::string owner_id, std::string sandbox_id);
  // The shell and everything it started.
  Task<Status> End(std::string owner_id, std::string sandbox_id, std::string id);
  // Ends shells that nobody has looked at for too long, forgets those whose sandbox is gone.
  Task<Status> Sweep();

  const Options& options() const { return options_; }

 private:
  friend class Seat;

  Task<Result<std::unique_ptr<Seat>>> Begin(const work::Sandboxes::Connection& connection,
                                            store::TerminalRow row, sdk::PtyCommand command);
  Result<std::unique_ptr<Seat>> SeatAt(std::shared_ptr<Terminal> terminal, bool reattached);
  // From now on it is followed.
  Task<Status> Run(std::shared_ptr<Terminal> terminal, std::shared_ptr<sdk::Pty> pty);
  Task<void> RunToEnd(std::shared_ptr<Terminal> terminal);
  // Whether a sandbox whose shell was lost has ended, or is about to.
  Task<bool> SandboxEnds(store::TerminalRow row);
  Task<Result<store::TerminalRow>> Find(std::string sandbox_id, std::string id);
  // Those whose shell runs; the others are forgotten. All of them if that cannot be found out.
  Task<Result<std::vector<store::TerminalRow>>> Living(work::SandboxRow sandbox);
  // The row goes, and it is told why; a second time is fine.
  Task<Status> Forget(store::TerminalRow row, std::string reason, int exit_code = 0);
  // kFailedPrecondition: the sandbox is paused.
  Task<Status> Kill(store::TerminalRow row, work::SandboxRow sandbox, std::string reason);
  Task<Status> SetSeen(std::vector<std::string> ids);
  Task<void> Left(std::string id);
  Task<void> Care();
  Task<void> MarkUsed(std::shared_ptr<Terminal> terminal);

  asio::any_io_executor executor_;
  const Options options_;
  store::Store& store_;
  events::Log& log_;
  work::Sandboxes& sandboxes_;
  TaskGroup tasks_;
  std::map<std::string, std::shared_ptr<Terminal>> live_;
  std::set<std::string> opening_;  // rows whose shell may not be there yet
};

}  // namespace caisson::terminal
