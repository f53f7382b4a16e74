// The board: columns with counts, and what moving a task between them means.
#include "work/agents.h"
#include "work/event.h"
#include "work/json_fields.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::AgentRow;
using store::Select;
using store::TaskRow;
using store::Transaction;

Status CheckMove(const TaskRow& task, const Move& move, const Config& config) {
  bool known = false;
  for (const Column& column : kColumns) known = known || column.status == move.status;
  if (!known) return Fail(Code::kInvalidArgument, "there is no column '{}'", move.status);
  TRY(CheckText(move.feedback, "feedback", 0, static_cast<size_t>(config.api_max_string)));
  if (task.status == "in_review" && move.status == "in_progress" && move.feedback.empty() &&
      task.feedback.empty())
    return Fail(Code::kInvalidArgument,
                "a task goes from review back to work only with feedback for its agent, "
                "yours or a reviewer's");
  if (move.status == "in_review" && task.status != "in_review" && task.pull_request_number == 0)
    return Fail(Code::kFailedPrecondition,
                "there is nothing to review: the task has no pull request");
  return {};
}

Result<BoardColumn> FillColumn(Transaction& tx, const std::string& owner_id,
                               const std::string& squad_id, const Column& column,
                               int64_t per_column) {
  Select<TaskRow> select;
  select.Eq(&TaskRow::owner_id, owner_id).Eq(&TaskRow::status, column.status);
  if (!squad_id.empty()) select.Eq(&TaskRow::squad_id, squad_id);
  BoardColumn filled{.column = column};
  TRY_ASSIGN(filled.count, tx.Count(select));
  select.Order(&TaskRow::position).Order(&TaskRow::number);
  TRY_ASSIGN(auto rows, tx.List(select.Limit(per_column)));
  for (TaskRow& row : rows) {
    TRY_ASSIGN(TaskView view, ViewOf(tx, std::move(row)));
    filled.tasks.push_back(std::move(view));
  }
  return filled;
}

}  // namespace

Task<Result<TaskView>> Tasks::MoveTo(std::string owner_id, std::string id, Move move) {
  struct Moved {
    TaskView task;
    bool began = false;
  };
  Status allowed = starts_.Take(owner_id);
  auto moved = co_await platform_.store.Write(
      [this, owner_id, id, move, allowed](Transaction& tx) -> Result<Moved> {
        Moved done;
        TRY_ASSIGN(TaskRow task, NeedTask(tx, owner_id, id));
        TRY(CheckMove(task, move, platform_.config));
        if (move.status == "in_progress" && task.status != "in_progress") {
          TRY_ASSIGN(Started started, StartTask(tx, platform_,
                                                {.owner_id = owner_id,
                                                 .task_id = id,
                                                 .feedback = move.feedback,
                                                 .execution_id = move.execution_id,
                                                 .allowed = allowed}));
          done.began = !started.already;
        } else if (move.status != task.status) {
          TRY(CancelWork(tx, platform_, task, "the task was moved to " + move.status));
        }
        TRY_ASSIGN(task, NeedTask(tx, owner_id, id));
        // A task of an outside agent waits in pending until that asks for work.
        if (move.status != task.status) task.queued_at.reset();
        if (move.status != "in_progress") TRY(SetTaskStatus(tx, platform_, task, move.status));
        if (move.position) {
          task.position = *move.position;
          TRY(tx.Update(task));
          TRY(platform_.log.Emit(tx, About(task, "task_updated", TaskData(task))));
        }
        TRY_ASSIGN(done.task, ViewOf(tx, std::move(task)));
        return done;
      });
  if (allowed && !(moved && moved->began)) starts_.GiveBack(owner_id);
  platform_.flow.Wake();
  CO_TRY(moved);
  co_return std::move(moved->task);
}

Task<Result<Board>> Tasks::GetBoard(std::string owner_id, std::string squad_id,
                                    int64_t per_column) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<Board> {
    Board board;
    for (const Column& column : kColumns) {
      TRY_ASSIGN(BoardColumn filled, FillColumn(tx, owner_id, squad_id, column, per_column));
      board.columns.push_back(std::move(filled));
    }
    TRY_ASSIGN(auto agents, tx.List(Select<AgentRow>().Eq(&AgentRow::owner_id, owner_id)));
    for (const AgentRow& agent : agents) {
      board.agents += agent.status != "paused";
      board.free_agents += IsFree(agent);
    }
    return board;
  });
}

}  // namespace caisson::work
