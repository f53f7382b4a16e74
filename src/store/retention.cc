#include "store/retention.h"

#include <array>

#include "base/log.h"

namespace caisson::store {
namespace {

// Small enough not to hold up the calls that wait meanwhile. A sandbox takes its events along.
constexpr int64_t kRows = 1'000;
constexpr int64_t kSandboxes = 50;

struct Kind {
  const char* table;
  const char* column;  // the time that counts
  std::chrono::hours age;
  int64_t batch = kRows;
};

Result<int64_t> DeleteSome(Database& database, const Kind& kind) {
  TRY(database.Run(
      fmt::format("DELETE FROM {0} WHERE id IN (SELECT id FROM {0} WHERE {1} < ? LIMIT ?)",
                  kind.table, kind.column),
      Now() - kind.age, kind.batch));
  return database.changes();
}

}  // namespace

bool DeleteOld(Database& database, const Retention& retention) {
  auto days = [](int64_t count) { return std::chrono::hours(24 * count); };
  const std::array kinds = {
      Kind{"sandboxes", "ended_at", days(retention.days), kSandboxes},
      Kind{"git_operations", "created_at", days(retention.days)},
      Kind{"webhook_deliveries", "at", days(retention.days)},
      // They take their turns along.
      Kind{"agent_loops", "updated_at", days(retention.days), kSandboxes},
      Kind{"events", "at", days(retention.events_days)},
      Kind{"audit_log", "at", days(retention.audit_days)},
      Kind{"idempotency", "created_at", std::chrono::hours(retention.idempotency_hours)},
      // A link that is good no longer is of no use to anybody.
      Kind{"task_shares", "expires_at", std::chrono::hours(1)},
      // An ended one is shown to its user for as long as what was done with it is remembered.
      Kind{"logins", "expires_at", days(retention.days)},
  };
  bool more = false;
  for (const Kind& kind : kinds) {
    if (kind.age.count() <= 0) continue;
    Result<int64_t> deleted = DeleteSome(database, kind);
    if (!deleted)
      LogError("old rows could not be deleted from the database",
               {{"table", kind.table}, {"error", deleted.error().message()}});
    else if (*deleted > 0)
      LogInfo("deleted old rows from the database", {{"table", kind.table}, {"count", *deleted}});
    more |= deleted && *deleted == kind.batch;
  }
  return more;
}

}  // namespace caisson::store
