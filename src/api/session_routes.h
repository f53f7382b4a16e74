// /api/v1/sessions: conversations and their sandboxes; and /sandbox, the spelling of the seeds.
#pragma once

#include "api/frame.h"
#include "session/sessions.h"

namespace caisson::api {

class SessionRoutes {
 public:
  // Both outlive this, and this outlives the frame.
  SessionRoutes(session::Sessions& sessions, work::Sandboxes& sandboxes)
      : sessions_(sessions), sandboxes_(sandboxes) {}

  void Add(Frame& frame);

 private:
  using Method = Answer (SessionRoutes::*)(Call&);

  Handler Bind(Method method);
  Answer Serve(Method method, Call& call);
  void AddSessions(Frame& frame);
  void AddMessages(Frame& frame);
  void AddSandboxes(Frame& frame);

  Answer Create(Call& call);
  Answer List(Call& call);
  Answer Get(Call& call);
  Answer Update(Call& call);
  Answer SetModel(Call& call);
  Answer Models(Call& call);
  Answer Delete(Call& call);
  Answer DeleteMany(Call& call);

  Answer Send(Call& call);
  Answer History(Call& call);
  Answer Stop(Call& call);

  Answer Provision(Call& call);
  Answer ProvisionFor(Call& call, std::string session_id);
  Answer ShowSandbox(Call& call);
  Answer PauseSession(Call& call);
  Answer CreateSandbox(Call& call);
  Answer SandboxStatus(Call& call);
  Answer PauseSandbox(Call& call);

  session::Sessions& sessions_;
  work::Sandboxes& sandboxes_;
};

}  // namespace caisson::api
