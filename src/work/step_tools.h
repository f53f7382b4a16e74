// What the steps of a task share.
#pragma once

#include "flow/definition.h"
#include "store/work_rows.h"
#include "work/json_fields.h"

namespace caisson::work {

inline const json::object& ResultOf(const flow::StepContext& context, const std::string& step) {
  static const json::object kNone;
  auto found = context.results.find(step);
  return found == context.results.end() ? kNone : found->second;
}

// Changes the execution in the transaction of the outcome.
template <class Change>
std::function<Status(store::Transaction&)> OnExecution(std::string id, Change change) {
  return [id = std::move(id), change = std::move(change)](store::Transaction& tx) -> Status {
    TRY_ASSIGN(auto execution, tx.Get<store::ExecutionRow>(id));
    if (!execution) return {};
    TRY(change(tx, *execution));
    return tx.Update(*execution);
  };
}

inline bool NothingChanged(const flow::StepContext& context) {
  return ArrayIn(ResultOf(context, "commit"), "commits").empty();
}

}  // namespace caisson::work
