#include "work/run_home.h"

#include "base/log.h"
#include "work/sandboxes.h"

namespace caisson::work {

using store::RunRow;
using store::Select;
using store::Transaction;

Result<std::vector<SandboxRow>> SandboxesOf(Transaction& tx, const std::string& kind,
                                            std::vector<std::string> holders) {
  return tx.List(Select<SandboxRow>()
                     .Eq(&SandboxRow::holder_kind, kind)
                     .In(&SandboxRow::holder_id, std::move(holders))
                     .IsNull(&SandboxRow::destroyed_at));
}

void SetHome(flow::Definition& definition, const events::Log& log, FindSandboxes find) {
  definition.home = [find](Transaction& tx, const RunRow& run) -> Result<std::string> {
    TRY_ASSIGN(auto rows, find(tx, run));
    for (const SandboxRow& row : rows)
      if (!row.node.empty()) return row.node;
    return std::string();
  };
  definition.leave = [find, &log](Transaction& tx, const RunRow& run,
                                  const std::string& node) -> Status {
    TRY_ASSIGN(auto rows, find(tx, run));
    for (const SandboxRow& row : rows) {
      if (row.node != node) continue;
      LogWarn("a sandbox is given up with its server",
              {{"sandbox", row.id}, {"node", node}, {"run", run.id}});
      TRY(Sandboxes::EndRow(tx, log, row, "terminated", "its server is lost: " + node));
    }
    return {};
  };
}

}  // namespace caisson::work
