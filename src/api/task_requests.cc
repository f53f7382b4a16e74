#include "api/task_requests.h"

#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::ObjectIn;
using work::TextOf;
using work::TextsOf;

constexpr std::string_view kTask = R"({"type":"object","properties":{
  "id":{"type":"string"},"owner_id":{"type":"string"},"number":{"type":"integer"},"title":{"type":"string"},
  "description":{"type":"string"},
  "status":{"type":"string","enum":["backlog","pending","in_progress","in_review","done","failed",
    "canceled"]},
  "priority":{"type":"string","enum":["low","medium","high","urgent"]},
  "position":{"type":"number"},"agent_id":{"type":["string","null"]},
  "squad_id":{"type":["string","null"]},"repo_url":{"type":"string"},
  "base_branch":{"type":"string"},"git_branch":{"type":"string"},
  "pull_request_url":{"type":"string"},"pull_request_number":{"type":"integer"},
  "pull_request_state":{"type":"string"},"feedback":{"type":"string"},
  "options":{"type":"object"},"blocked_by":{"type":"array","items":{"type":"string"}},
  "blocks":{"type":"array","items":{"type":"string"}},
  "paused_at":{"type":["string","null"],"format":"date-time",
    "description":"the work on it stands still since then"},"pause_reason":{"type":"string"},
  "queued_at":{"type":["string","null"],"format":"date-time",
    "description":"it waits since then for an agent that is free"},
  "queue_position":{"type":"integer","description":"its turn, from 1; 0: it does not wait"},
  "created_at":{"type":"string","format":"date-time"},
  "updated_at":{"type":"string","format":"date-time"},
  "completed_at":{"type":["string","null"],"format":"date-time"}}})";
constexpr std::string_view kOptions = R"({"type":"object","properties":{
  "commit_message":{"type":"string","minLength":1,"maxLength":10000,
    "description":"a conventional commit; made from the title if not said"},
  "pr_title":{"type":"string","minLength":1,"maxLength":256},
  "pr_body":{"type":"string","minLength":1,"maxLength":10000},
  "branch_name":{"type":"string","minLength":1,"maxLength":200},
  "labels":{"type":"array","maxItems":20,"items":{"type":"string","minLength":1,"maxLength":100}},
  "reviewers":{"type":"array","maxItems":20,"items":{"type":"string","minLength":1,
    "maxLength":100}},
  "draft":{"type":"boolean"},
  "approve_push":{"type":"boolean","description":"a person has to agree before it is pushed"},
  "template":{"type":"string","minLength":1,"maxLength":200}}})";
constexpr std::string_view kNewTask = R"({"type":"object","required":["title"],"properties":{
  "title":{"type":"string","minLength":1,"maxLength":500},
  "description":{"type":"string","maxLength":10000},
  "repo_url":{"type":"string","maxLength":2000},"base_branch":{"type":"string","maxLength":200},
  "priority":{"type":"string","enum":["low","medium","high","urgent"]},
  "status":{"type":"string","enum":["backlog","pending"]},
  "agent_id":{"type":["string","null"],"maxLength":100},
  "squad_id":{"type":["string","null"],"maxLength":100},
  "blocked_by":{"type":"array","maxItems":100,"items":{"type":"string","maxLength":100}},
  "options":{"$ref":"#/components/schemas/TaskOptions"}}})";
constexpr std::string_view kTaskChange = R"({"type":"object","properties":{
  "title":{"type":"string","minLength":1,"maxLength":500},
  "description":{"type":"string","maxLength":10000},
  "repo_url":{"type":"string","maxLength":2000},"base_branch":{"type":"string","maxLength":200},
  "priority":{"type":"string","enum":["low","medium","high","urgent"]},
  "status":{"type":"string","enum":["backlog","pending","in_progress","in_review","done","failed",
    "canceled"],"description":"moves it, as the route move does"},
  "position":{"type":"number"},"feedback":{"type":"string","maxLength":10000},
  "agent_id":{"type":["string","null"],"maxLength":100},
  "squad_id":{"type":["string","null"],"maxLength":100},
  "blocked_by":{"type":"array","maxItems":100,"items":{"type":"string","maxLength":100}},
  "options":{"$ref":"#/components/schemas/TaskOptions"}}})";
constexpr std::string_view kMove = R"({"type":"object","required":["status"],"properties":{
  "status":{"type":"string","enum":["backlog","pending","in_progress","in_review","done","failed",
    "canceled"]},
  "position":{"type":"number","description":"its place in the column; the end if not said"},
  "feedback":{"type":"string","maxLength":10000,
    "description":"for the agent; needed from in_review to in_progress"}}})";
constexpr std::string_view kStart = R"({"type":"object","properties":{
  "agent_id":{"type":"string","maxLength":100},
  "feedback":{"type":"string","maxLength":10000},
  "when":{"type":"string","enum":["now","free"],
    "description":"free: it waits for its turn if nobody is free, instead of being refused"}}})";
constexpr std::string_view kPause = R"({"type":"object","properties":{
  "reason":{"type":"string","maxLength":1000}}})";
constexpr std::string_view kStartWithAgent = R"({"type":"object","properties":{
  "task_id":{"type":"string","maxLength":100},"feedback":{"type":"string","maxLength":10000},
  "when":{"type":"string","enum":["now","free"]},
  "title":{"type":"string","minLength":1,"maxLength":500},
  "description":{"type":"string","maxLength":10000},
  "repo_url":{"type":"string","maxLength":2000},"base_branch":{"type":"string","maxLength":200},
  "priority":{"type":"string","enum":["low","medium","high","urgent"]},
  "squad_id":{"type":["string","null"],"maxLength":100},
  "options":{"$ref":"#/components/schemas/TaskOptions"}}})";
constexpr std::string_view kStarted = R"({"type":"object","properties":{
  "execution_id":{"type":"string"},"run_id":{"type":"string"},"task_id":{"type":"string"},
  "already_running":{"type":"boolean"},
  "queued":{"type":"boolean","description":"it waits for its turn; there is no execution yet"}}})";
constexpr std::string_view kDemonstration = R"({"type":"object",
  "required":["task_id","agent_id"],"properties":{
  "task_id":{"type":"string"},"agent_id":{"type":"string"}}})";
constexpr std::string_view kWorkflow = R"({"type":"object","required":["task_id"],"properties":{
  "task_id":{"type":"string","maxLength":100},"agent_id":{"type":"string","maxLength":100},
  "repo_url":{"type":"string","maxLength":2000},
  "branch_name":{"type":"string","minLength":1,"maxLength":200},
  "base_branch":{"type":"string","maxLength":200},
  "pr_title":{"type":"string","minLength":1,"maxLength":256},
  "pr_body":{"type":"string","minLength":1,"maxLength":10000},
  "commit_message":{"type":"string","minLength":1,"maxLength":10000}}})";
constexpr std::string_view kWorkflowStarted = R"({"type":"object","properties":{
  "status":{"type":"string"},"event_id":{"type":"string"},"execution_id":{"type":"string"},
  "run_id":{"type":"string"},"task_id":{"type":"string"}}})";
constexpr std::string_view kExecution = R"({"type":"object","properties":{
  "id":{"type":"string"},"task_id":{"type":["string","null"]},
  "agent_id":{"type":["string","null"]},"squad_id":{"type":["string","null"]},
  "run_id":{"type":"string"},"sandbox_id":{"type":"string"},"status":{"type":"string"},
  "git_branch":{"type":"string"},"base_sha":{"type":"string"},"head_sha":{"type":"string"},
  "pull_request_url":{"type":"string"},
  "commit_history":{"type":"array","description":"what it added to the branch, newest first",
    "items":{"type":"object","properties":{"sha":{"type":"string"},"message":{"type":"string"}}}},
  "commits":{"type":"array","description":"the same as commit_history",
    "items":{"type":"object"}},
  "summary":{"type":"string"},"exit_code":{"type":"integer"},"error":{"type":"string"},
  "created_at":{"type":"string","format":"date-time"},
  "started_at":{"type":["string","null"],"format":"date-time"},
  "finished_at":{"type":["string","null"],"format":"date-time"},
  "steps":{"type":"array","description":"of one execution, not in lists","items":{"type":"object",
    "properties":{"name":{"type":"string"},"state":{"type":"string"},
    "attempt":{"type":"integer"},"error":{"type":"string"},
    "started_at":{"type":["string","null"],"format":"date-time"},
    "finished_at":{"type":["string","null"],"format":"date-time"}}}}}})";
constexpr std::string_view kBoard = R"({"type":"object","properties":{
  "columns":{"type":"array","items":{"type":"object","properties":{
    "status":{"type":"string"},"title":{"type":"string"},"count":{"type":"integer"},
    "tasks":{"type":"array","items":{"$ref":"#/components/schemas/Task"}}}}},
  "wip":{"type":"object","properties":{"in_progress":{"type":"integer"},
    "agents":{"type":"integer"},"free_agents":{"type":"integer"}}}}})";
constexpr std::string_view kTaskPullRequest = R"({"type":"object","properties":{
  "number":{"type":"integer"},"url":{"type":"string"},"state":{"type":"string"},
  "branch":{"type":"string"},"base_branch":{"type":"string"},"repo_url":{"type":"string"}}})";
constexpr std::string_view kOperation = R"({"type":"object","properties":{
  "id":{"type":"string"},"sandbox_id":{"type":"string"},"task_id":{"type":["string","null"]},
  "execution_id":{"type":"string"},"operation":{"type":"string"},"status":{"type":"string"},
  "command":{"type":"string"},"exit_code":{"type":"integer"},"attempts":{"type":"integer"},
  "commit_sha":{"type":"string"},"error_type":{"type":"string"},
  "error_message":{"type":"string"},"output_head":{"type":"string"},
  "output_tail":{"type":"string"},"duration_ms":{"type":"integer"},
  "created_at":{"type":"string","format":"date-time"}}})";

}  // namespace

work::NewTask ReadNewTask(const json::object& body) {
  work::NewTask task{.title = TextOf(body, "title"),
                     .description = TextOf(body, "description"),
                     .repo_url = TextOf(body, "repo_url"),
                     .base_branch = TextOf(body, "base_branch"),
                     .agent_id = OptionalText(body, "agent_id"),
                     .squad_id = OptionalText(body, "squad_id"),
                     .blocked_by = TextsOf(body, "blocked_by"),
                     .options = ObjectIn(body, "options")};
  if (auto priority = OptionalText(body, "priority")) task.priority = *priority;
  if (auto status = OptionalText(body, "status")) task.status = *status;
  return task;
}

work::TaskChange ReadTaskChange(const json::object& body) {
  work::TaskChange change{.title = OptionalText(body, "title"),
                          .description = OptionalText(body, "description"),
                          .repo_url = OptionalText(body, "repo_url"),
                          .base_branch = OptionalText(body, "base_branch"),
                          .priority = OptionalText(body, "priority"),
                          .agent_id = OptionalId(body, "agent_id"),
                          .squad_id = OptionalId(body, "squad_id")};
  if (body.contains("blocked_by")) change.blocked_by = TextsOf(body, "blocked_by");
  if (body.contains("options")) change.options = ObjectIn(body, "options");
  return change;
}

void AddTaskSchemas(Frame& frame) {
  frame.AddSchema("Task", kTask);
  frame.AddSchema("TaskList", ListSchema("tasks", "Task"));
  frame.AddSchema("TaskOptions", kOptions);
  frame.AddSchema("NewTask", kNewTask);
  frame.AddSchema("TaskPause", kPause);
  frame.AddSchema("Demonstration", kDemonstration);
  frame.AddSchema("TaskChange", kTaskChange);
  frame.AddSchema("TaskMove", kMove);
  frame.AddSchema("TaskStart", kStart);
  frame.AddSchema("StartWithAgent", kStartWithAgent);
  frame.AddSchema("Started", kStarted);
  frame.AddSchema("WorkflowExecute", kWorkflow);
  frame.AddSchema("WorkflowStarted", kWorkflowStarted);
  frame.AddSchema("Execution", kExecution);
  frame.AddSchema("ExecutionList", ListSchema("executions", "Execution"));
  frame.AddSchema("Board", kBoard);
  frame.AddSchema("TaskPullRequest", kTaskPullRequest);
  frame.AddSchema("GitOperation", kOperation);
  frame.AddSchema("GitOperationList", ListSchema("operations", "GitOperation"));
}

}  // namespace caisson::api
