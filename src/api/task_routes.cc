#include "api/task_routes.h"

#include "api/github_codec.h"
#include "api/task_requests.h"
#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::TextOf;
using work::Work;

const std::string& Id(const Call& call) { return call.params.find("id")->second; }

Answer Create(Work& work, Call& call) {
  work::NewTask wanted = ReadNewTask(call.body);
  wanted.id = call.new_id;
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Create(call.who.user_id, std::move(wanted)));
  call.target = task.row.id;
  co_return http::Response::Json(201, Encode(task));
}

Answer List(Work& work, Call& call) {
  work::TaskFilter filter{.statuses = TextParameters(call, "status"),
                          .priorities = TextParameters(call, "priority"),
                          .agent_id = TextParameter(call, "agent_id"),
                          .squad_id = TextParameter(call, "squad_id"),
                          .repo = TextParameter(call, "repo"),
                          .text = TextParameter(call, "text"),
                          .pull_request_state = TextParameter(call, "pull_request_state"),
                          .page = PageOf(call)};
  CO_TRY_ASSIGN(auto listed, co_await work.tasks.List(call.owner(), filter));
  co_return ListResponse("tasks", listed);
}

Answer Get(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(task));
}

work::Move ReadMove(const json::object& body) {
  work::Move move{.status = TextOf(body, "status"), .feedback = TextOf(body, "feedback")};
  if (body.contains("position")) move.position = work::NumberOf(body, "position");
  return move;
}

// A change of the status is a move, after the other changes.
Answer Update(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto task,
                co_await work.tasks.Update(call.who.user_id, Id(call), ReadTaskChange(call.body)));
  if (call.body.contains("status") || call.body.contains("position")) {
    work::Move move = ReadMove(call.body);
    if (move.status.empty()) move.status = task.row.status;
    CO_TRY_ASSIGN(task, co_await work.tasks.MoveTo(call.who.user_id, Id(call), move));
  }
  co_return http::Response::Json(200, Encode(task));
}

Answer MoveTask(Work& work, Call& call) {
  work::Move move = ReadMove(call.body);
  move.execution_id = call.new_id;
  CO_TRY_ASSIGN(auto task, co_await work.tasks.MoveTo(call.who.user_id, Id(call), move));
  co_return http::Response::Json(200, Encode(task));
}

Answer Delete(Work& work, Call& call) {
  CO_TRY(co_await work.tasks.Delete(call.who.user_id, Id(call)));
  co_return http::Response::Empty(204);
}

Answer Start(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto started,
                co_await work.tasks.Start({.owner_id = call.who.user_id,
                                           .task_id = Id(call),
                                           .agent_id = TextOf(call.body, "agent_id"),
                                           .feedback = TextOf(call.body, "feedback"),
                                           .execution_id = call.new_id,
                                           .when_free = TextOf(call.body, "when") == "free"}));
  co_return http::Response::Json(202, Encode(started));
}

Answer Cancel(Work& work, Call& call) {
  CO_TRY(co_await work.tasks.Cancel(call.who.user_id, Id(call), "canceled by its owner"));
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(202, Encode(task));
}

Answer Pause(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto task,
                co_await work.tasks.Pause(call.who.user_id, Id(call), TextOf(call.body, "reason")));
  co_return http::Response::Json(200, Encode(task));
}

Answer Resume(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Resume(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(task));
}

Answer StartDemo(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto started, co_await work.demo.Start(call.who.user_id, call.new_id));
  call.target = started.task_id;
  co_return http::Response::Json(
      started.already ? 200 : 201,
      json::object{{"task_id", started.task_id}, {"agent_id", started.agent_id}});
}

// The spelling of the seeds: settings of the task and its start in one call.
Answer ExecuteWorkflow(Work& work, Call& call) {
  std::string id = TextOf(call.body, "task_id");
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Get(call.who.user_id, id));
  work::TaskChange change{.repo_url = OptionalText(call.body, "repo_url"),
                          .base_branch = OptionalText(call.body, "base_branch")};
  json::object options = work::ParseObject(task.row.options);
  for (std::string_view name : {"branch_name", "pr_title", "pr_body", "commit_message"})
    if (auto text = OptionalText(call.body, name)) options[name] = *text;
  change.options = std::move(options);
  if (task.row.status != "in_progress")
    CO_TRY(co_await work.tasks.Update(call.who.user_id, id, change));
  CO_TRY_ASSIGN(auto started, co_await work.tasks.Start({.owner_id = call.who.user_id,
                                                         .task_id = id,
                                                         .agent_id = TextOf(call.body, "agent_id"),
                                                         .execution_id = call.new_id}));
  call.target = id;
  co_return http::Response::Json(202, json::object{{"status", "workflow_started"},
                                                   {"event_id", started.execution_id},
                                                   {"execution_id", started.execution_id},
                                                   {"run_id", started.run_id},
                                                   {"task_id", id}});
}

Answer GetBoard(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto board,
                co_await work.tasks.GetBoard(call.who.user_id, TextParameter(call, "squad_id"),
                                             NumberParameter(call, "limit", 50)));
  json::array columns;
  int64_t in_progress = 0;
  for (const work::BoardColumn& column : board.columns) {
    json::array tasks;
    for (const work::TaskView& task : column.tasks) tasks.push_back(Encode(task));
    columns.push_back(json::object{{"status", column.column.status},
                                   {"title", column.column.title},
                                   {"count", column.count},
                                   {"tasks", std::move(tasks)}});
    if (column.column.status == "in_progress") in_progress = column.count;
  }
  co_return http::Response::Json(200, json::object{{"columns", std::move(columns)},
                                                   {"wip",
                                                    {{"in_progress", in_progress},
                                                     {"agents", board.agents},
                                                     {"free_agents", board.free_agents}}}});
}

Answer ListExecutions(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto listed,
                co_await work.executions.List(call.who.user_id, Id(call), PageOf(call)));
  co_return ListResponse("executions", listed);
}

Answer GetExecution(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto execution, co_await work.executions.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(execution));
}

Answer ListOperations(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto listed,
                co_await work.executions.Operations(call.who.user_id, Id(call), PageOf(call)));
  co_return ListResponse("operations", listed);
}

http::Response PullRequestResponse(const store::TaskRow& row) {
  return http::Response::Json(200, json::object{{"number", row.pull_request_number},
                                                {"url", row.pull_request_url},
                                                {"state", row.pull_request_state},
                                                {"branch", row.git_branch},
                                                {"base_branch", row.base_branch},
                                                {"repo_url", row.repo_url}});
}

Answer GetPullRequest(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto task, co_await work.tasks.Get(call.who.user_id, Id(call)));
  if (task.row.pull_request_url.empty())
    co_return Fail(Code::kNotFound, "the task {} has no pull request", task.row.id);
  co_return PullRequestResponse(task.row);
}

Answer RefreshPullRequest(work::PullRequestWatch& watch, Call& call) {
  CO_TRY_ASSIGN(auto task, AsOurs(co_await watch.Refresh(call.who.user_id, Id(call))));
  co_return PullRequestResponse(task);
}

void AddTasks(Frame& frame, Work& work) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks",
             .tag = "tasks",
             .id = "createTask",
             .summary = "Make a task",
             .request = "NewTask",
             .responses = {{201, "Task"}},
             .handler = Bind(work, Create)});
  frame.Add(
      {.method = "GET",
       .pattern = "/api/v1/tasks",
       .tag = "tasks",
       .id = "listTasks",
       .summary = "Your tasks, newest first",
       .access = Access::kViewer,
       .parameters = WithPage({{.name = "status", .description = "only those", .repeated = true},
                               {.name = "priority", .description = "only those", .repeated = true},
                               {.name = "agent_id", .description = "assigned to this agent"},
                               {.name = "squad_id", .description = "of this squad"},
                               {.name = "repo", .description = "part of the repository's URL"},
                               {.name = "text", .description = "part of the title"},
                               {.name = "pull_request_state",
                                .description = "of its pull request; any: it has one",
                                .values = {"open", "draft", "merged", "closed", "any"}},
                               kAllParameter}),
       .responses = {{200, "TaskList"}},
       .handler = Bind(work, List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}",
             .tag = "tasks",
             .id = "getTask",
             .summary = "One task",
             .access = Access::kViewer,
             .responses = {{200, "Task"}},
             .handler = Bind(work, Get)});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/tasks/{id}",
             .tag = "tasks",
             .id = "updateTask",
             .summary = "Change a task, or move it",
             .request = "TaskChange",
             .responses = {{200, "Task"}, {409, "Error"}},
             .handler = Bind(work, Update)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/tasks/{id}",
             .tag = "tasks",
             .id = "deleteTask",
             .summary = "Delete a task that is not worked on",
             .responses = {{204, ""}, {409, "Error"}},
             .handler = Bind(work, Delete)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/move",
             .tag = "tasks",
             .id = "moveTask",
             .summary = "Move a task to a column; into in_progress starts it",
             .request = "TaskMove",
             .responses = {{200, "Task"}, {409, "Error"}},
             .handler = Bind(work, MoveTask)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/board",
             .tag = "tasks",
             .id = "getBoard",
             .summary = "The columns of the board with counts and their first tasks",
             .access = Access::kViewer,
             .parameters = {{.name = "squad_id", .description = "only tasks of this squad"},
                            {.name = "limit",
                             .type = "integer",
                             .description = "tasks per column; 50 if it is not said",
                             .min = 1,
                             .max = 200}},
             .responses = {{200, "Board"}},
             .handler = Bind(work, GetBoard)});
}

void AddStarts(Frame& frame, Work& work) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/start",
             .tag = "tasks",
             .id = "startTask",
             .summary = "Let an agent work on a task",
             .request = "TaskStart",
             .body_optional = true,
             .responses = {{202, "Started"}, {409, "Error"}},
             .handler = Bind(work, Start)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/cancel",
             .tag = "tasks",
             .id = "cancelTask",
             .summary = "Call the work on a task off",
             .responses = {{202, "Task"}},
             .handler = Bind(work, Cancel)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/pause",
             .tag = "tasks",
             .id = "pauseTask",
             .summary = "Let the work on a task stand still, its sandbox too",
             .request = "TaskPause",
             .body_optional = true,
             .responses = {{200, "Task"}, {409, "Error"}},
             .handler = Bind(work, Pause)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/resume",
             .tag = "tasks",
             .id = "resumeTask",
             .summary = "Let the work on a paused task go on where it was",
             .responses = {{200, "Task"}},
             .handler = Bind(work, Resume)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/demo",
             .tag = "tasks",
             .id = "startDemo",
             .summary = "Let the agent demo build a small page, without a repository or a key",
             .responses = {{200, "Demonstration"}, {201, "Demonstration"}, {409, "Error"}},
             .handler = Bind(work, StartDemo)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sandboxes/workflows/execute",
             .tag = "tasks",
             .id = "executeWorkflow",
             .summary = "Start the workflow of a task, with its settings in one call",
             .request = "WorkflowExecute",
             .responses = {{202, "WorkflowStarted"}, {409, "Error"}},
             .handler = Bind(work, ExecuteWorkflow)});
}

void AddHistory(Frame& frame, Work& work) {
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}/executions",
             .tag = "tasks",
             .id = "listExecutions",
             .summary = "The attempts at a task, newest first",
             .access = Access::kViewer,
             .parameters = WithPage({}),
             .responses = {{200, "ExecutionList"}},
             .handler = Bind(work, ListExecutions)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/executions/{id}",
             .tag = "tasks",
             .id = "getExecution",
             .summary = "One attempt, with its steps",
             .access = Access::kViewer,
             .responses = {{200, "Execution"}},
             .handler = Bind(work, GetExecution)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}/operations",
             .tag = "tasks",
             .id = "listTaskOperations",
             .summary = "The commands that were run for a task, in order",
             .access = Access::kViewer,
             .parameters = WithPage({}),
             .responses = {{200, "GitOperationList"}},
             .handler = Bind(work, ListOperations)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/tasks/{id}/pull-request",
             .tag = "tasks",
             .id = "getTaskPullRequest",
             .summary = "The pull request of a task",
             .access = Access::kViewer,
             .responses = {{200, "TaskPullRequest"}},
             .handler = Bind(work, GetPullRequest)});
}

}  // namespace

void AddRefreshRoute(Frame& frame, work::PullRequestWatch& watch) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/tasks/{id}/pull-request/refresh",
             .tag = "tasks",
             .id = "refreshTaskPullRequest",
             .summary = "Ask GitHub what became of the pull request of a task",
             .responses = {{200, "TaskPullRequest"}},
             .handler = [&watch](Call& call) { return RefreshPullRequest(watch, call); }});
}

void AddTaskRoutes(Frame& frame, Work& work) {
  AddTaskSchemas(frame);
  AddTasks(frame, work);
  AddStarts(frame, work);
  AddHistory(frame, work);
}

}  // namespace caisson::api
