#include "work/adapters.h"

#include <algorithm>

#include "work/json_fields.h"

namespace caisson::work {

sdk::Command BaseCommand(const AgentJob& job) {
  sdk::Command command;
  command.cwd = job.workdir;
  command.timeout = job.timeout;
  command.env = {{"CAISSON_TASK", Prompt(job)},
                 {"CAISSON_TASK_ID", job.task_id},
                 {"CAISSON_EXECUTION_ID", job.execution_id},
                 {"CAISSON_WORKDIR", job.workdir},
                 {"CI", "1"},
                 {"NO_COLOR", "1"}};
  return command;
}

void Complete(sdk::Command& command, const AgentJob& job) {
  for (std::string& arg : TextsOf(job.config, "args")) command.argv.push_back(std::move(arg));
  for (const auto& [name, value] : ObjectIn(job.config, "env"))
    if (value.is_string()) command.env[std::string(name)] = std::string(value.as_string());
}

Result<std::string> ModelUrl(const AgentJob& job, const std::string& usual) {
  if (TextOf(job.config, "model_keys") == "environment") return "";
  std::string route = TextOf(job.config, "model_route");
  if (route.empty()) route = usual;
  if (std::ranges::find(job.model_routes, route) == job.model_routes.end())
    return Fail(Code::kFailedPrecondition,
                "this server has no way to the models of '{}': add it to the setting model_routes, "
                "or let the agent bring its own keys with model_keys = environment",
                route);
  return job.model_url(route);
}

}  // namespace caisson::work
