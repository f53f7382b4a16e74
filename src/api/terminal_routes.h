// /api/v1/sandboxes/{id}/terminal: a shell in a sandbox over a WebSocket, and who has which.
#pragma once

#include "api/frame.h"
#include "terminal/terminals.h"

namespace caisson::api {

class TerminalRoutes {
 public:
  // Outlives this, and this outlives the frame.
  explicit TerminalRoutes(terminal::Terminals& terminals) : terminals_(terminals) {}

  void Add(Frame& frame);

 private:
  Answer Open(Call& call);
  Answer List(Call& call);
  Answer End(Call& call);

  terminal::Terminals& terminals_;
};

}  // namespace caisson::api
