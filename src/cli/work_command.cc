#include "cli/work_command.h"

#include "base/encoding.h"
#include "cli/answers.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "cli/task_watch.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

class Runner {
 public:
  Runner(ApiClient& client, bool as_json) : client_(client), json_(as_json) {}

  Task<Result<int>> Run(AddAgent add) {
    json::object config;
    if (!add.config.empty()) {
      boost::system::error_code ec;
      json::value parsed = json::parse(add.config, ec);
      if (ec || !parsed.is_object())
        co_return Fail(Code::kInvalidArgument, "--config must be a JSON object");
      config = parsed.as_object();
    }
    if (!add.model.empty()) config["model"] = add.model;
    if (!add.command.empty())
      config["command"] = json::array(add.command.begin(), add.command.end());
    json::object env;
    for (const auto& [name, value] : add.env) env[name] = value;
    if (!env.empty()) config["env"] = std::move(env);
    json::object body{{"name", add.name}, {"adapter", add.adapter}, {"config", config}};
    if (!add.role.empty()) body["role"] = add.role;
    co_return Made(co_await client_.Call("POST", "/api/v1/agents", body));
  }

  Task<Result<int>> Run(ListAgents) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/agents?limit=200"));
    Rows rows;
    for (const json::value& agent : List(answer.body, "agents"))
      rows.push_back({Text(agent, "id"), Text(agent, "name"), Text(agent, "adapter"),
                      Text(agent, "status"), Text(agent, "current_task_id")});
    Table(answer.body, {"ID", "NAME", "ADAPTER", "STATUS", "TASK"}, rows,
          "There are no agents. Make one with: caisson agent add\n");
    co_return 0;
  }

  Task<Result<int>> Run(RemoveAgents remove) {
    for (const std::string& one : remove.agents) {
      CO_TRY_ASSIGN(std::string id, co_await FindAgent(client_, one));
      CO_TRY(co_await client_.Call("DELETE", "/api/v1/agents/" + PercentEncode(id)));
      if (!json_) Print(id + "\n");
    }
    co_return 0;
  }

  Task<Result<int>> Run(CreateTask create) {
    json::object body{{"title", create.title}, {"priority", create.priority}};
    if (!create.description.empty()) body["description"] = create.description;
    if (!create.repo.empty()) body["repo_url"] = create.repo;
    if (!create.base.empty()) body["base_branch"] = create.base;
    if (!create.squad.empty()) body["squad_id"] = create.squad;
    if (create.draft) body["options"] = {{"draft", true}};
    if (!create.agent.empty()) {
      CO_TRY_ASSIGN(std::string agent, co_await FindAgent(client_, create.agent));
      body["agent_id"] = agent;
    }
    CO_TRY_ASSIGN(auto made, co_await client_.Call("POST", "/api/v1/tasks", body));
    std::string id = Text(made.body, "id");
    if (!create.start) co_return Made(made);
    CO_TRY_ASSIGN(auto started,
                  co_await client_.Call("POST", "/api/v1/tasks/" + PercentEncode(id) + "/start"));
    if (!create.watch) {
      if (json_) PrintJson(started.body);
      if (!json_) Print(id + "\n");
      co_return 0;
    }
    if (!json_) Print(fmt::format("task {}\n", id));
    co_return co_await WatchExecution(client_, Text(started.body, "execution_id"), json_);
  }

  Task<Result<int>> Run(WatchTask watch) {
    CO_TRY_ASSIGN(auto answer,
                  co_await client_.Call("GET", TaskPath(watch.id) + "/executions?limit=1"));
    json::array executions = List(answer.body, "executions");
    if (executions.empty())
      co_return Fail(Code::kFailedPrecondition, "nobody has worked on this task yet");
    co_return co_await WatchExecution(client_, Text(executions[0], "id"), json_);
  }

  Task<Result<int>> Run(ListTasks list) {
    std::string query = "?limit=200";
    if (!list.status.empty()) query += "&status=" + PercentEncode(list.status);
    if (!list.text.empty()) query += "&text=" + PercentEncode(list.text);
    if (!list.agent.empty()) {
      CO_TRY_ASSIGN(std::string agent, co_await FindAgent(client_, list.agent));
      query += "&agent_id=" + PercentEncode(agent);
    }
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/tasks" + query));
    Rows rows;
    for (const json::value& task : List(answer.body, "tasks"))
      rows.push_back({fmt::format("#{}", Number(task, "number")), Text(task, "id"),
                      Text(task, "status"), Text(task, "priority"), Age(task, "updated_at"),
                      Text(task, "title")});
    Table(answer.body, {"NO", "ID", "STATUS", "PRIORITY", "CHANGED", "TITLE"}, rows,
          "There are no tasks. Make one with: caisson task create\n");
    co_return 0;
  }

  Task<Result<int>> Run(ShowTask show) {
    CO_TRY_ASSIGN(auto task, co_await client_.Call("GET", TaskPath(show.id)));
    CO_TRY_ASSIGN(auto attempts, co_await client_.Call("GET", TaskPath(show.id) + "/executions"));
    if (json_) {
      json::object both = task.body.as_object();
      both["executions"] = List(attempts.body, "executions");
      PrintJson(both);
      co_return 0;
    }
    for (const char* name :
         {"id", "title", "status", "priority", "repo_url", "git_branch", "pull_request_url",
          "feedback", "paused_at", "pause_reason", "created_at"})
      if (std::string text = Text(task.body, name); !text.empty())
        Print(fmt::format("{:18}{}\n", name, Printable(text)));
    Rows rows;
    for (const json::value& one : List(attempts.body, "executions"))
      rows.push_back({Text(one, "run_id"), Text(one, "status"), Age(one, "created_at"),
                      Text(one, "status") == "failed" ? Text(one, "error") : Text(one, "summary")});
    if (!rows.empty()) Print("\n" + FormatTable({"RUN", "STATUS", "AGE", "SUMMARY"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(CancelTask cancel) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", TaskPath(cancel.id) + "/cancel"));
    co_return Made(answer);
  }

  Task<Result<int>> Run(PauseTask pause) {
    json::object body;
    if (!pause.reason.empty()) body["reason"] = pause.reason;
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", TaskPath(pause.id) + "/pause", body));
    co_return Made(answer);
  }

  Task<Result<int>> Run(ResumeTask resume) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", TaskPath(resume.id) + "/resume"));
    co_return Made(answer);
  }

  Task<Result<int>> Run(ShowRun show) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", RunPath(show.id)));
    if (json_) {
      PrintJson(answer.body);
      co_return 0;
    }
    for (const char* name :
         {"id", "state", "task_id", "queue_expires_at", "error", "cancel_reason"})
      if (std::string text = Text(answer.body, name); !text.empty())
        Print(fmt::format("{:18}{}\n", name, Printable(text)));
    Rows rows;
    for (const json::value& step : List(answer.body, "steps"))
      rows.push_back({Text(step, "name"), Text(step, "state"),
                      std::to_string(Number(step, "attempt")), Text(step, "error")});
    Print("\n" + FormatTable({"STEP", "STATE", "ATTEMPT", "ERROR"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(RetryRun retry) {
    json::object body;
    if (!retry.step.empty()) body["step"] = retry.step;
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", RunPath(retry.id) + "/retry", body));
    co_return Made(answer);
  }

  Task<Result<int>> Run(ListRuns list) {
    std::string query = "?limit=200";
    if (!list.state.empty()) query += "&state=" + PercentEncode(list.state);
    if (!list.task.empty()) query += "&task_id=" + PercentEncode(list.task);
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/runs" + query));
    Rows rows;
    for (const json::value& run : List(answer.body, "runs"))
      rows.push_back({Text(run, "id"), Text(run, "state"), Text(run, "step"),
                      Age(run, "created_at"), Text(run, "task_id"), Text(run, "error")});
    Table(answer.body, {"ID", "STATE", "STEP", "AGE", "TASK", "ERROR"}, rows,
          "There are no runs.\n");
    co_return 0;
  }

 private:
  static std::string TaskPath(const std::string& id) {
    return "/api/v1/tasks/" + PercentEncode(id);
  }
  static std::string RunPath(const std::string& id) { return "/api/v1/runs/" + PercentEncode(id); }

  // The id of what was made or changed.
  Result<int> Made(const Result<ApiClient::Answer>& answer) {
    if (!answer) return tl::unexpected(answer.error());
    if (json_)
      PrintJson(answer->body);
    else
      Print(Text(answer->body, "id") + "\n");
    return 0;
  }
  void Table(const json::value& body, const std::vector<std::string>& header, const Rows& rows,
             std::string_view none) {
    if (json_)
      PrintJson(body);
    else
      Print(rows.empty() ? std::string(none) : FormatTable(header, rows));
  }

  ApiClient& client_;
  bool json_;
};

}  // namespace

int RunWorkCommand(const WorkCommand& command) {
  return RunClient(command.server, [&command](ApiClient& client) -> Task<Result<int>> {
    Runner runner(client, command.json);
    co_return co_await std::visit([&](const auto& action) { return runner.Run(action); },
                                  command.action);
  });
}

}  // namespace caisson::cli
