// Agents: who works on tasks, with which program.
#pragma once

#include <boost/json/object.hpp>

#include "store/work_rows.h"
#include "work/offered_models.h"
#include "work/platform.h"

namespace caisson::work {

namespace json = boost::json;

struct NewAgent {
  std::string id = {};  // "" = a random one; an agent that has it already is the answer
  std::string name;
  std::string role = "developer";
  std::string adapter = "command";
  json::object config;
  std::string avatar_url;
};
struct AgentChange {  // only what is set is changed
  std::optional<std::string> name, role, adapter, avatar_url;
  std::optional<json::object> config;
  std::optional<bool> paused;
};
struct AgentFilter {
  std::string status, adapter, squad_id, text;  // "" = any
  Page page;
};

class Agents {
 public:
  // `models` outlives it.
  Agents(Platform platform, OfferedModels& models) : platform_(platform), models_(models) {}

  // kInvalidArgument: the configuration; a model that its server does not offer.
  Task<Result<store::AgentRow>> Create(std::string owner_id, NewAgent agent);
  // Owner "": everybody's, for an administrator.
  Task<Result<Listed<store::AgentRow>>> List(std::string owner_id, AgentFilter filter);
  Task<Result<store::AgentRow>> Get(std::string owner_id, std::string id);
  // The adapter and its configuration hold from the next task on.
  Task<Result<store::AgentRow>> Update(std::string owner_id, std::string id, AgentChange change);
  // kFailedPrecondition while it works.
  Task<Status> Delete(std::string owner_id, std::string id);

 private:
  Task<Status> CheckModel(store::AgentRow agent);

  Platform platform_;
  OfferedModels& models_;
};

// kNotFound also if it is somebody else's.
Result<store::AgentRow> NeedAgent(store::Transaction& tx, const std::string& owner_id,
                                  const std::string& id);
// Can take a task now.
bool IsFree(const store::AgentRow& agent);
// Writes the row with a new status and tells it.
Status SetAgentStatus(store::Transaction& tx, Platform& platform, store::AgentRow& agent,
                      const std::string& status);

}  // namespace caisson::work
