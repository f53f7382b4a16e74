// What `caisson agent`, `caisson task` and `caisson run` were asked to do.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cli/server_access.h"

namespace caisson::cli {

struct AddAgent {
  std::string name;
  std::string adapter = "command";
  std::string role;
  std::string model;                       // "" = the program's own
  std::map<std::string, std::string> env;  // variables of the agent
  std::string config;                      // JSON, for all that has no option; "" = none
  std::vector<std::string> command;        // of the adapter "command"
};
struct ListAgents {};
struct RemoveAgents {
  std::vector<std::string> agents;  // names or ids
};
struct CreateTask {
  std::string title, description, repo, base, priority = "medium";
  std::string agent, squad;  // name or id of the agent, id of the squad
  bool draft = false;
  bool start = true;  // at once, if it has an agent or a squad
  bool watch = false;
};
struct WatchTask {
  std::string id;
};
struct ListTasks {
  std::string status, agent, text;  // "" = any
};
struct ShowTask {
  std::string id;
};
struct CancelTask {
  std::string id;
};
struct PauseTask {
  std::string id;
  std::string reason;
};
struct ResumeTask {
  std::string id;
};
struct ShowRun {
  std::string id;
};
struct RetryRun {
  std::string id;
  std::string step;  // "" = where it stopped
};
struct ListRuns {
  std::string state, task;  // "" = any
};
using WorkAction =
    std::variant<ListTasks, AddAgent, ListAgents, RemoveAgents, CreateTask, WatchTask, ShowTask,
                 CancelTask, PauseTask, ResumeTask, ShowRun, RetryRun, ListRuns>;
struct WorkCommand {
  ServerAccess server;
  bool json = false;
  WorkAction action;
};

}  // namespace caisson::cli
