#include "work/tasks.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/id.h"
#include "git/commit_message.h"
#include "git/repository.h"
#include "work/agents.h"
#include "work/dependencies.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/json_fields.h"
#include "work/paging.h"
#include "work/squads.h"

namespace caisson::work {
namespace {

using store::Select;
using store::TaskRow;
using store::Transaction;

constexpr size_t kMaxTitle = 500, kMaxBranch = 200, kMaxLabels = 20;

Status CheckWord(std::string_view value, std::string_view what, const auto& words) {
  if (std::ranges::find(words, value) != words.end()) return {};
  return Fail(Code::kInvalidArgument, "{} must be one of {}, not '{}'", what,
              fmt::join(words, ", "), value);
}

Status Check(Transaction& tx, const TaskRow& task, const Config& config) {
  auto max_text = static_cast<size_t>(config.api_max_string);
  TRY(CheckText(task.title, "the title of a task", 1, kMaxTitle));
  TRY(CheckText(task.description, "the description of a task", 0, max_text));
  TRY(CheckText(task.feedback, "feedback", 0, max_text));
  TRY(CheckText(task.base_branch, "base_branch", 0, kMaxBranch));
  TRY(CheckWord(task.priority, "priority", kPriorities));
  if (!task.base_branch.empty()) TRY(git::CheckBranchName(task.base_branch));
  if (!task.repo_url.empty()) TRY(git::ParseRepository(task.repo_url, config.github_url));
  if (task.agent_id) TRY(NeedAgent(tx, task.owner_id, *task.agent_id));
  if (task.squad_id) TRY(NeedSquad(tx, task.owner_id, *task.squad_id));
  return CheckTaskOptions(ParseObject(task.options));
}

Result<int64_t> NextNumber(Transaction& tx, const std::string& owner_id) {
  TRY_ASSIGN(
      auto last,
      tx.First(Select<TaskRow>().Eq(&TaskRow::owner_id, owner_id).Order(&TaskRow::number, true)));
  return last ? last->number + 1 : 1;
}

std::optional<std::string> OrNone(const std::string& id) {
  return id.empty() ? std::nullopt : std::optional(id);
}

Result<TaskRow> Insert(Transaction& tx, Platform& platform, const std::string& owner_id,
                       const NewTask& task) {
  if (!task.id.empty()) {
    TRY_ASSIGN(auto made, tx.Get<TaskRow>(task.id));
    if (made) return NeedTask(tx, owner_id, task.id);
  }
  TaskRow row{.id = task.id.empty() ? RandomUuid() : task.id,
              .owner_id = owner_id,
              .squad_id = task.squad_id,
              .agent_id = task.agent_id,
              .title = task.title,
              .description = task.description,
              .status = task.status,
              .priority = task.priority,
              .repo_url = task.repo_url,
              .base_branch = task.base_branch,
              .options = json::serialize(task.options),
              .created_at = Now(),
              .updated_at = Now()};
  if (task.status != "pending" && task.status != "backlog")
    return Fail(Code::kInvalidArgument, "a new task stands in pending or backlog, not in '{}'",
                task.status);
  TRY(Check(tx, row, platform.config));
  TRY_ASSIGN(row.number, NextNumber(tx, owner_id));
  TRY_ASSIGN(row.position, EndOfColumn(tx, owner_id, row.status));
  TRY(tx.Insert(row));
  TRY(SetBlockers(tx, row, task.blocked_by));
  TRY(platform.log.Emit(tx, About(row, "task_created", TaskData(row))));
  return row;
}

Status CheckTextOption(const json::object& options, std::string_view name, size_t max) {
  const json::value* value = options.if_contains(name);
  if (!value) return {};
  if (!value->is_string()) return Fail(Code::kInvalidArgument, "options.{} must be a text", name);
  return CheckText(value->as_string(), fmt::format("options.{}", name), 1, max);
}

Status CheckListOption(const json::object& options, std::string_view name) {
  const json::value* value = options.if_contains(name);
  if (!value) return {};
  std::vector<std::string> texts = TextsOf(options, name);
  if (!value->is_array() || texts.size() != value->as_array().size() || texts.size() > kMaxLabels)
    return Fail(Code::kInvalidArgument, "options.{} must be a list of at most {} texts", name,
                kMaxLabels);
  for (const std::string& text : texts) TRY(CheckText(text, name, 1, 100));
  return {};
}

Select<TaskRow> Matching(const std::string& owner_id, const TaskFilter& filter) {
  Select<TaskRow> select;
  if (!owner_id.empty()) select.Eq(&TaskRow::owner_id, owner_id);
  if (!filter.statuses.empty()) select.In(&TaskRow::status, filter.statuses);
  if (!filter.priorities.empty()) select.In(&TaskRow::priority, filter.priorities);
  if (!filter.agent_id.empty()) select.Eq(&TaskRow::agent_id, filter.agent_id);
  if (!filter.squad_id.empty()) select.Eq(&TaskRow::squad_id, filter.squad_id);
  // What was approved is open still.
  if (filter.pull_request_state == "open")
    select.In(&TaskRow::pull_request_state, std::vector<std::string>{"open", "approved"});
  else if (filter.pull_request_state == "any")
    select.Greater(&TaskRow::pull_request_number, 0);
  else if (!filter.pull_request_state.empty())
    select.Eq(&TaskRow::pull_request_state, filter.pull_request_state);
  if (!filter.repo.empty()) select.Contains(&TaskRow::repo_url, filter.repo);
  if (!filter.text.empty()) select.Contains(&TaskRow::title, filter.text);
  return select;
}

}  // namespace

Status CheckTaskOptions(const json::object& options) {
  constexpr std::array kKnown = {"commit_message", "pr_title",     "pr_body",
                                 "branch_name",    "labels",       "reviewers",
                                 "draft",          "approve_push", "template"};
  for (const auto& [name, value] : options) TRY(CheckWord(name, "an option of a task", kKnown));
  for (std::string_view name : {"draft", "approve_push"})
    if (const json::value* value = options.if_contains(name); value && !value->is_bool())
      return Fail(Code::kInvalidArgument, "options.{} must be true or false", name);
  TRY(CheckTextOption(options, "commit_message", 10'000));
  TRY(CheckTextOption(options, "pr_title", 256));
  TRY(CheckTextOption(options, "pr_body", 10'000));
  TRY(CheckTextOption(options, "branch_name", kMaxBranch));
  TRY(CheckTextOption(options, "template", 200));
  TRY(CheckListOption(options, "labels"));
  TRY(CheckListOption(options, "reviewers"));
  if (std::string branch = TextOf(options, "branch_name"); !branch.empty())
    TRY(git::CheckBranchName(branch));
  if (std::string message = TextOf(options, "commit_message"); !message.empty())
    TRY(git::CheckCommitMessage(message));
  return {};
}

Result<TaskRow> NeedTask(Transaction& tx, const std::string& owner_id, const std::string& id) {
  TRY_ASSIGN(auto task, tx.Get<TaskRow>(id));
  // SECURITY: the same words for one of somebody else.
  if (!task || task->owner_id != owner_id) return Fail(Code::kNotFound, "there is no task {}", id);
  return std::move(*task);
}

Result<TaskView> ViewOf(Transaction& tx, TaskRow task) {
  TaskView view{.row = std::move(task)};
  TRY_ASSIGN(view.blocked_by, BlockersOf(tx, view.row.id));
  TRY_ASSIGN(view.blocks, BlockedBy(tx, view.row.id));
  if (view.row.queued_at) {
    TRY_ASSIGN(int64_t before, tx.Count(Select<TaskRow>()
                                            .Eq(&TaskRow::owner_id, view.row.owner_id)
                                            .Less(&TaskRow::queued_at, *view.row.queued_at)));
    view.queue_position = before + 1;
  }
  return view;
}

Result<double> EndOfColumn(Transaction& tx, const std::string& owner_id,
                           const std::string& status) {
  TRY_ASSIGN(auto last, tx.First(Select<TaskRow>()
                                     .Eq(&TaskRow::owner_id, owner_id)
                                     .Eq(&TaskRow::status, status)
                                     .Order(&TaskRow::position, true)));
  return last ? last->position + 1 : 1;
}

Status SetTaskStatus(Transaction& tx, Platform& platform, TaskRow& task,
                     const std::string& status) {
  std::string previous = task.status;
  if (previous != status) {
    TRY_ASSIGN(task.position, EndOfColumn(tx, task.owner_id, status));
    task.status = status;
  }
  task.updated_at = Now();
  if (status == "done") {
    task.completed_at = task.updated_at;
  } else {
    task.completed_at.reset();
  }
  TRY(tx.Update(task));
  json::object data = TaskData(task);
  if (previous != status) data["previous_status"] = previous;
  TRY(platform.log.Emit(tx, About(task, "task_updated", std::move(data))));
  return {};
}

Task<Result<TaskView>> Tasks::Create(std::string owner_id, NewTask task) {
  co_return co_await platform_.store.Write(
      [this, owner_id, task](Transaction& tx) -> Result<TaskView> {
        TRY_ASSIGN(TaskRow row, Insert(tx, platform_, owner_id, task));
        return ViewOf(tx, std::move(row));
      });
}

Task<Result<Listed<TaskView>>> Tasks::List(std::string owner_id, TaskFilter filter) {
  co_return co_await platform_.store.Read(
      [owner_id, filter](Transaction& tx) -> Result<Listed<TaskView>> {
        Select<TaskRow> select = Matching(owner_id, filter);
        return ListPage(tx, select.Order(&TaskRow::number, true).Order(&TaskRow::id), filter.page,
                        ViewOf);
      });
}

Task<Result<TaskView>> Tasks::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([owner_id, id](Transaction& tx) -> Result<TaskView> {
    TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
    return ViewOf(tx, std::move(task));
  });
}

Task<Result<TaskView>> Tasks::Update(std::string owner_id, std::string id, TaskChange change) {
  co_return co_await platform_.store.Write(
      [this, owner_id, id, change](Transaction& tx) -> Result<TaskView> {
        TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
        if (task.status == "in_progress" && (change.agent_id || change.repo_url))
          return Fail(Code::kFailedPrecondition,
                      "the task is being worked on; its agent and its repository can be changed "
                      "when that is over");
        if (change.title) task.title = *change.title;
        if (change.description) task.description = *change.description;
        if (change.repo_url) task.repo_url = *change.repo_url;
        if (change.base_branch) task.base_branch = *change.base_branch;
        if (change.priority) task.priority = *change.priority;
        if (change.agent_id) task.agent_id = OrNone(*change.agent_id);
        if (change.squad_id) task.squad_id = OrNone(*change.squad_id);
        if (change.options) task.options = json::serialize(*change.options);
        TRY(Check(tx, task, platform_.config));
        if (change.blocked_by) TRY(SetBlockers(tx, task, *change.blocked_by));
        TRY(SetTaskStatus(tx, platform_, task, task.status));
        return ViewOf(tx, std::move(task));
      });
}

Task<Status> Tasks::Delete(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Status {
    TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
    TRY_ASSIGN(auto live, LiveExecutions(tx, &store::ExecutionRow::task_id, id));
    if (!live.empty())
      return Fail(Code::kFailedPrecondition, "the task is being worked on; cancel it first");
    TRY(tx.Delete(Select<TaskRow>().Eq(&TaskRow::id, id)));
    TRY(platform_.log.Emit(tx, About(task, "task_deleted", TaskData(task))));
    return {};
  });
}

Task<Result<Started>> Tasks::Start(StartRequest request) {
  request.allowed = starts_.Take(request.owner_id);
  auto started = co_await platform_.store.Write(
      [this, request](Transaction& tx) { return StartTask(tx, platform_, request); });
  if (request.allowed && (!started || started->already)) starts_.GiveBack(request.owner_id);
  platform_.flow.Wake();
  co_return started;
}

Task<Result<Started>> Tasks::CreateAndStart(std::string owner_id, NewTask task, bool when_free) {
  Status allowed = starts_.Take(owner_id);
  auto started = co_await platform_.store.Write(
      [this, owner_id, task, allowed, when_free](Transaction& tx) -> Result<Started> {
        TRY_ASSIGN(TaskRow row, Insert(tx, platform_, owner_id, task));
        return StartTask(tx, platform_,
                         {.owner_id = owner_id,
                          .task_id = row.id,
                          .execution_id = task.id,
                          .allowed = allowed,
                          .when_free = when_free});
      });
  if (allowed && (!started || started->already)) starts_.GiveBack(owner_id);
  platform_.flow.Wake();
  co_return started;
}

Task<Result<bool>> Tasks::Cancel(std::string owner_id, std::string id, std::string reason) {
  auto canceled =
      co_await platform_.store.Write([this, owner_id, id, reason](Transaction& tx) -> Result<bool> {
        TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
        TRY_ASSIGN(bool any, CancelWork(tx, platform_, task, reason));
        // What runs ends by itself; a task that waits is canceled at once.
        bool waits = task.status == "pending" || task.status == "backlog";
        if (!any && task.queued_at) {
          task.queued_at.reset();
          TRY(SetTaskStatus(tx, platform_, task, task.status));
        } else if (!any && waits) {
          TRY(SetTaskStatus(tx, platform_, task, "canceled"));
        }
        return any;
      });
  platform_.flow.Wake();
  co_return canceled;
}

}  // namespace caisson::work
