// Looks after sessions that nobody uses: one timer for all of them, which asks the database. A
// session that sleeps costs nothing but its rows.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "session/sessions.h"

namespace caisson::session {

class IdleWatch {
 public:
  // So many are put away at the same time: each may take long, and costs the machine something.
  static constexpr size_t kAtOnce = 8;

  // All outlive it.
  IdleWatch(asio::any_io_executor executor, work::Platform platform, Keeper& keeper,
            Sessions& sessions, work::Sandboxes& sandboxes);

  void Start();
  Task<void> Stop();

  // ---- what it does; called by tests, too --------------------------------------------
  // Sessions whose sandbox was woken by a request to one of its ports are active again; those that
  // are unused for session_idle_pause_s are put away. One that cannot be put away is tried again
  // later and later, after all others, and ended when session_idle_end says so.
  Task<void> CheckIdle();
  // What is rarer: session_idle_end, session_archive_days, deletes that were interrupted.
  Task<void> CheckOld();

 private:
  using Clock = std::chrono::steady_clock;
  struct Failure {
    int times = 0;
    Clock::time_point again;  // not before
  };

  Task<void> Watch();
  Task<void> NoteWoken();
  // Those of the idle ones whose turn it is.
  std::deque<store::SessionRow> Due(std::vector<store::SessionRow> idle);
  Task<void> CareForAll();
  Task<Status> CareFor(store::SessionRow session);
  // Puts it away, or ends it.
  Task<Status> Retire(store::SessionRow session, Time last_used);
  struct Use {
    Time last;                         // by whomever, as far as anybody knows
    std::optional<Time> ends_at = {};  // of the sandbox, if it was asked
  };
  Task<Result<Use>> LastUse(store::SessionRow session);
  // It is used: it keeps running.
  Task<Status> Extend(store::SessionRow session, Use use);
  Task<std::vector<store::SessionRow>> Find(store::Select<store::SessionRow> select);

  work::Platform platform_;
  Keeper& keeper_;
  Sessions& sessions_;
  work::Sandboxes& sandboxes_;
  std::deque<store::SessionRow> waiting_;    // for one of those that put away
  std::set<std::string> in_care_;            // ids
  std::map<std::string, Failure> failures_;  // by id; only of sessions that are idle still
  TaskGroup tasks_, care_;
};

}  // namespace caisson::session
