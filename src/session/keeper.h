// The sandbox of a session: made, woken, put away and ended, one thing at a time for each session.
// The row in the database is all there is to know; nothing is kept in memory while a session
// sleeps.
#pragma once

#include "git/lock.h"
#include "store/session_rows.h"
#include "work/git_desk.h"
#include "work/platform.h"
#include "work/sandboxes.h"

namespace caisson::session {

class Keeper {
 public:
  // All outlive it.
  Keeper(work::Platform platform, work::Sandboxes& sandboxes, work::GitDesk& desk)
      : platform_(platform), sandboxes_(sandboxes), desk_(desk) {}

  struct Opened {
    work::SandboxRow sandbox;  // it runs
    bool made = false;         // there was none before
  };
  // The session's sandbox: woken if it sleeps, made if there is none. One that was lost is
  // replaced, and the user is told. The session is "active" then, or "error" with the reason.
  Task<Result<Opened>> Open(std::string session_id, std::string reason);

  // Saves the work, then puts the sandbox away with its memory. Second time is fine.
  // kNotFound "no_sandbox: ..."; kFailedPrecondition: an answer is being written.
  Task<Status> Pause(std::string session_id, std::string reason);
  // The same while an answer is being written, by an agent that waits for the next day.
  Task<Status> Rest(std::string session_id, std::string reason);
  // Ends the sandbox if there is one; the session is then as `status` says.
  Task<Status> End(std::string session_id, std::string status, std::string reason);
  // Asks the provider without waking anything, and corrects the session. kNotFound "no_sandbox".
  Task<Result<work::SandboxState>> Look(std::string session_id);

 private:
  Task<Result<git::Lock::Guard>> Lock(std::string kind, std::string id);
  Task<Result<store::SessionRow>> Load(std::string session_id);
  Task<Result<Opened>> OpenLocked(store::SessionRow session, std::string reason);
  Task<Status> PauseLocked(store::SessionRow session, std::string reason);
  // Puts the session away that was unused for longest, if the user has as many as they may.
  Task<Status> MakeRoom(store::SessionRow session);
  // Commits and pushes what stands in the checkout. "", or why it could not be done.
  Task<std::string> Save(store::SessionRow session);
  // A mark in the sandbox that tells after a pause whether its files are those of before.
  Task<Status> SetMark(store::SessionRow session, std::string mark);
  Task<bool> HasMark(store::SessionRow session, std::string mark);

  work::Platform platform_;
  work::Sandboxes& sandboxes_;
  work::GitDesk& desk_;
  git::Locks locks_;
};

}  // namespace caisson::session
