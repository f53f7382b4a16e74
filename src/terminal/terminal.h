// One shell at a terminal of a sandbox, as this server follows it: its latest output, and those who
// look at it. A shell goes on without anybody, and without this server.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/config.h"
#include "sdk/pty.h"
#include "store/terminal_rows.h"

namespace caisson::terminal {

struct Options {
  std::chrono::minutes idle{60};     // nobody looks for so long: it is ended; 0 = never
  size_t history_bytes = 256 << 10;  // of output, for who comes back
  size_t queue_bytes = 1 << 20;      // that may wait for a viewer before the shell waits
  int64_t max_per_sandbox = 20;
  int64_t max_viewers = 10;  // of one shell
  std::chrono::seconds ping{30};
};

// As the settings say.
Options OptionsFrom(const Config& config);

// Why a viewer sees no more.
struct Ending {
  enum class Kind { kExit, kLost, kSlow, kStopping };
  Kind kind = Kind::kExit;
  int exit_code = 0;    // kExit
  std::string message;  // the others
};

// Who looks. None of these may wait.
class Viewer {
 public:
  virtual ~Viewer() = default;
  virtual void Show(std::string_view output) = 0;
  // Nothing comes after it.
  virtual void End(const Ending& ending) = 0;
  virtual size_t waiting() const = 0;  // bytes that were shown and are not taken yet
};

class Terminal {
 public:
  Terminal(asio::any_io_executor executor, const Options& options, store::TerminalRow row)
      : row(std::move(row)), options_(options), room_(std::move(executor)) {}

  store::TerminalRow row;
  std::string end_reason = "exit";                  // why it ends, once somebody has decided that
  std::chrono::steady_clock::time_point used_at{};  // when the sandbox was last marked as used
  bool active = false;  // something was typed or shown since somebody asked last
  size_t seats = 0;     // of those who look, or are about to

  bool followed() const { return pty_ != nullptr; }
  // To write to; it may be replaced while a call is under way.
  std::shared_ptr<sdk::Pty> pty() const { return pty_; }
  void Begin(std::shared_ptr<sdk::Pty> pty) { pty_ = std::move(pty); }
  // Passes output on until the end, which all viewers have been told of when it returns.
  Task<Ending> Follow();

  // Shows what is kept of the output, then all that comes.
  void Attach(Viewer& viewer);
  void Detach(Viewer& viewer) { viewers_.remove(&viewer); }
  void EndViewers(const Ending& ending);
  // Something that waited was taken.
  void Drained() { room_.Notify(); }

 private:
  Task<Ending> Pass();
  void Keep(std::string_view output);
  // Until no viewer is behind by too much; those who take nothing are let go.
  Task<void> WaitForViewers();

  const Options& options_;
  std::shared_ptr<sdk::Pty> pty_;
  std::string history_;
  std::list<Viewer*> viewers_;
  Condition room_;
};

}  // namespace caisson::terminal
