// The editor of a sandbox: the program editor_command, started inside once and found again by
// whichever server comes next. It listens on the sandbox's own loopback; the gateway lets nobody to
// its port but with a pass (gateway/editor_pass.h).
#pragma once

#include "git/lock.h"
#include "work/sandboxes.h"

namespace caisson::work {

class Editors {
 public:
  // Both outlive it.
  Editors(const Config& config, Sandboxes& sandboxes) : config_(config), sandboxes_(sandboxes) {}

  // kFailedPrecondition "no_editor": none is configured. kUnimplemented: the provider's ports are
  // not guarded by this server.
  Status Check() const;
  uint16_t port() const { return static_cast<uint16_t>(config_.editor_port); }

  // Its sandbox, once somebody listens on the port. kUnavailable "editor_failed": it ended, with
  // its last words; kDeadlineExceeded: nobody listened within build_ready_timeout_s, and it was
  // ended. Others as those of Sandboxes::Connect().
  Task<Result<SandboxRow>> Open(std::string owner_id, std::string id);

 private:
  Task<Status> Start(sdk::EnvdClient& envd, const SandboxRow& row);
  Task<Status> AwaitPort(sdk::EnvdClient& envd, const SandboxRow& row);
  Task<Result<bool>> Listens(SandboxRow row);

  const Config& config_;
  Sandboxes& sandboxes_;
  git::Locks locks_;
};

}  // namespace caisson::work
