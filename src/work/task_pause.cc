// Tasks that stand still. The row says so; whoever runs a step of theirs looks at it.
#include "store/flow_rows.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/json_fields.h"
#include "work/squads.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::ExecutionRow;
using store::TaskRow;
using store::Transaction;

constexpr size_t kMaxReason = 1'000;

// The attempt that is under way, if it can be paused.
Result<ExecutionRow> NeedWork(Transaction& tx, const TaskRow& task) {
  TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, task.id));
  if (live.empty())
    return Fail(Code::kFailedPrecondition, "nobody works on the task: there is nothing to pause");
  if (live.front().run_id.empty())
    return Fail(Code::kFailedPrecondition,
                "an agent outside of this server works on the task; only a task whose agent works "
                "in a sandbox can be paused");
  TRY_ASSIGN(auto run, tx.Get<store::RunRow>(live.front().run_id));
  if (run && run->cancel_at)
    return Fail(Code::kFailedPrecondition, "the work on the task is being called off");
  return std::move(live.front());
}

}  // namespace

Task<Result<TaskView>> Tasks::Pause(std::string owner_id, std::string id, std::string reason) {
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Result<TaskView> {
    TRY(CheckText(reason, "the reason of a pause", 0, kMaxReason));
    TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
    TRY_ASSIGN(ExecutionRow execution, NeedWork(tx, task));
    if (!task.paused_at) {
      task.paused_at = Now();
      task.pause_reason = reason;
      TRY(SetTaskStatus(tx, platform_, task, task.status));
      json::object data{{"title", task.title}, {"reason", reason}};
      TRY(platform_.log.Emit(tx, About(execution, "task_paused", std::move(data))));
    }
    return ViewOf(tx, std::move(task));
  });
}

Task<Result<TaskView>> Tasks::Resume(std::string owner_id, std::string id) {
  auto resumed =
      co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Result<TaskView> {
        TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
        if (task.paused_at) {
          task.paused_at.reset();
          task.pause_reason.clear();
          TRY(SetTaskStatus(tx, platform_, task, task.status));
          TRY_ASSIGN(auto live, LiveExecutions(tx, &ExecutionRow::task_id, id));
          for (const ExecutionRow& execution : live) {
            TRY(platform_.log.Emit(tx, About(execution, "task_resumed", {{"title", task.title}})));
            TRY(WakePaused(tx, platform_, execution));
          }
        }
        return ViewOf(tx, std::move(task));
      });
  platform_.flow.Wake();
  co_return resumed;
}

}  // namespace caisson::work
