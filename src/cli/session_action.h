// What `caisson session` was asked to do.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/server_access.h"

namespace caisson::cli {

struct CreateSession {
  std::string title, repo, base, agent, model;  // "" = not said
};
struct ListSessions {
  std::string status, text;  // "" = any
};
struct SendMessage {
  std::string id, text;
  bool plan = false;
  bool wait = true;  // for the answer
};
struct StopAnswer {
  std::string id;
  bool all = false;
};
struct ShowHistory {
  std::string id;
  int64_t limit = 25;
};
struct PauseSession {
  std::string id;
};
struct DeleteSessions {
  std::vector<std::string> ids;
};
using SessionAction = std::variant<ListSessions, CreateSession, SendMessage, StopAnswer,
                                   ShowHistory, PauseSession, DeleteSessions>;
struct SessionCommand {
  ServerAccess server;
  bool json = false;
  SessionAction action;
};

}  // namespace caisson::cli
