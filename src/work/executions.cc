#include "work/executions.h"

#include "work/paging.h"
#include "work/tasks.h"

namespace caisson::work {

using store::ExecutionRow;
using store::GitOperationRow;
using store::Select;
using store::StepRow;
using store::Transaction;

bool IsLive(std::string_view status) {
  return status == "queued" || status == "running" || status == "waiting";
}

Result<std::vector<ExecutionRow>> LiveExecutions(Transaction& tx,
                                                 std::optional<std::string> ExecutionRow::* field,
                                                 const std::string& id) {
  return tx.List(
      Select<ExecutionRow>()
          .Eq(field, id)
          .In(&ExecutionRow::status, std::vector<std::string>{"queued", "running", "waiting"})
          .Order(&ExecutionRow::created_at, true));
}

Task<Result<Listed<ExecutionRow>>> Executions::List(std::string owner_id, std::string task_id,
                                                    Page page) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<Listed<ExecutionRow>> {
    TRY(NeedTask(tx, owner_id, task_id));
    Select<ExecutionRow> select;
    select.Eq(&ExecutionRow::task_id, task_id);
    select.Order(&ExecutionRow::created_at, true).Order(&ExecutionRow::id);
    return ListPage(tx, select, page);
  });
}

Task<Result<Execution>> Executions::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<Execution> {
    TRY_ASSIGN(auto row, tx.Get<ExecutionRow>(id));
    if (!row || row->owner_id != owner_id)
      return Fail(Code::kNotFound, "there is no execution {}", id);
    Execution execution{.row = std::move(*row)};
    if (!execution.row.run_id.empty()) {
      TRY_ASSIGN(
          execution.steps,
          tx.List(
              Select<StepRow>().Eq(&StepRow::run_id, execution.row.run_id).Order(&StepRow::seq)));
    }
    return execution;
  });
}

Task<Result<Listed<GitOperationRow>>> Executions::Operations(std::string owner_id,
                                                             std::string task_id, Page page) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<Listed<GitOperationRow>> {
    TRY(NeedTask(tx, owner_id, task_id));
    Select<GitOperationRow> select;
    select.Eq(&GitOperationRow::task_id, task_id);
    select.Order(&GitOperationRow::created_at).Order(&GitOperationRow::id);
    return ListPage(tx, select, page);
  });
}

}  // namespace caisson::work
