#include "work/event.h"

#include <boost/json/serialize.hpp>

namespace caisson::work {
namespace {

store::EventRow Make(std::string type, const std::string& owner_id, json::object data) {
  store::EventRow event;
  event.at = Now();
  event.type = std::move(type);
  event.owner_id = owner_id;
  event.data = json::serialize(data);
  return event;
}

}  // namespace

store::EventRow About(const store::TaskRow& task, std::string type, json::object data) {
  store::EventRow event = Make(std::move(type), task.owner_id, std::move(data));
  event.task_id = task.id;
  event.agent_id = task.agent_id.value_or("");
  event.squad_id = task.squad_id.value_or("");
  return event;
}

store::EventRow About(const store::AgentRow& agent, std::string type, json::object data) {
  store::EventRow event = Make(std::move(type), agent.owner_id, std::move(data));
  event.agent_id = agent.id;
  event.task_id = agent.current_task_id.value_or("");
  return event;
}

store::EventRow About(const store::SquadRow& squad, std::string type, json::object data) {
  store::EventRow event = Make(std::move(type), squad.owner_id, std::move(data));
  event.squad_id = squad.id;
  return event;
}

store::EventRow About(const store::ExecutionRow& execution, std::string type, json::object data) {
  store::EventRow event = Make(std::move(type), execution.owner_id, std::move(data));
  event.task_id = execution.task_id.value_or("");
  event.agent_id = execution.agent_id.value_or("");
  event.squad_id = execution.squad_id.value_or("");
  event.execution_id = execution.id;
  event.run_id = execution.run_id;
  event.sandbox_id = execution.sandbox_id;
  return event;
}

store::EventRow About(const store::ApprovalRow& approval, std::string type, json::object data) {
  store::EventRow event = Make(std::move(type), approval.owner_id, std::move(data));
  event.task_id = approval.task_id.value_or("");
  event.squad_id = approval.squad_id.value_or("");
  event.run_id = approval.run_id;
  return event;
}

json::object TaskData(const store::TaskRow& task) {
  json::object data{{"title", task.title},       {"number", task.number},
                    {"status", task.status},     {"priority", task.priority},
                    {"position", task.position}, {"git_branch", task.git_branch}};
  if (task.pull_request_number > 0) {
    data["pull_request_number"] = task.pull_request_number;
    data["pull_request_url"] = task.pull_request_url;
    data["pull_request_state"] = task.pull_request_state;
  }
  if (task.paused_at) data["paused"] = true;
  if (task.queued_at) data["queued"] = true;
  return data;
}

json::object AgentData(const store::AgentRow& agent) {
  return {{"name", agent.name}, {"status", agent.status}, {"adapter", agent.adapter}};
}

}  // namespace caisson::work
