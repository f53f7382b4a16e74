#include "work/dependencies.h"

#include <set>

#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::Select;
using store::TaskDependencyRow;
using store::TaskRow;
using store::Transaction;

constexpr size_t kMaxBlockers = 100;
// A longer chain is refused: walking it must not take the store's time from others.
constexpr size_t kMaxWalk = 10'000;

// True if `from` waits for `target`, directly or not.
Result<bool> WaitsFor(Transaction& tx, const std::string& from, const std::string& target) {
  std::vector<std::string> open{from};
  std::set<std::string> seen{from};
  while (!open.empty()) {
    std::string id = std::move(open.back());
    open.pop_back();
    if (id == target) return true;
    TRY_ASSIGN(auto blockers, BlockersOf(tx, id));
    for (std::string& blocker : blockers)
      if (seen.insert(blocker).second) open.push_back(std::move(blocker));
    if (seen.size() > kMaxWalk)
      return Fail(Code::kInvalidArgument, "too many tasks wait for each other here");
  }
  return false;
}

}  // namespace

Result<std::vector<std::string>> BlockersOf(Transaction& tx, const std::string& task_id) {
  TRY_ASSIGN(auto rows, tx.List(Select<TaskDependencyRow>()
                                    .Eq(&TaskDependencyRow::task_id, task_id)
                                    .Order(&TaskDependencyRow::id)));
  std::vector<std::string> ids;
  for (TaskDependencyRow& row : rows) ids.push_back(std::move(row.blocked_by));
  return ids;
}

Result<std::vector<std::string>> BlockedBy(Transaction& tx, const std::string& task_id) {
  TRY_ASSIGN(auto rows, tx.List(Select<TaskDependencyRow>()
                                    .Eq(&TaskDependencyRow::blocked_by, task_id)
                                    .Order(&TaskDependencyRow::id)));
  std::vector<std::string> ids;
  for (TaskDependencyRow& row : rows) ids.push_back(std::move(row.task_id));
  return ids;
}

Status SetBlockers(Transaction& tx, const TaskRow& task,
                   const std::vector<std::string>& blocked_by) {
  std::set<std::string> wanted(blocked_by.begin(), blocked_by.end());
  if (wanted.size() > kMaxBlockers)
    return Fail(Code::kInvalidArgument, "a task can wait for at most {} others", kMaxBlockers);
  TRY(tx.Delete(Select<TaskDependencyRow>().Eq(&TaskDependencyRow::task_id, task.id)));
  for (const std::string& id : wanted) {
    TRY_ASSIGN(TaskRow blocker, NeedTask(tx, task.owner_id, id));
    TRY_ASSIGN(bool circle, WaitsFor(tx, blocker.id, task.id));
    if (circle)
      return Fail(Code::kInvalidArgument,
                  "the task {} cannot wait for {}: that one waits for it already", task.id, id);
    TRY(tx.Insert(
        TaskDependencyRow{.id = task.id + ":" + id, .task_id = task.id, .blocked_by = id}));
  }
  return {};
}

Status CheckNotBlocked(Transaction& tx, const TaskRow& task) {
  TRY_ASSIGN(auto blockers, BlockersOf(tx, task.id));
  std::string open;
  for (const std::string& id : blockers) {
    TRY_ASSIGN(auto blocker, tx.Need<TaskRow>(id, "task"));
    if (blocker.status == "done") continue;
    open += fmt::format("{}#{} {} ({})", open.empty() ? "" : ", ", blocker.number, blocker.title,
                        blocker.status);
  }
  if (!open.empty())
    return Fail(Code::kFailedPrecondition, "this task waits for tasks that are not done: {}", open);
  return {};
}

}  // namespace caisson::work
