#include "store/flow_rows.h"

namespace caisson::store {
namespace {

// "busy" is who is at work: steps that run and whose lease has not ended. ?1 is the moment, ?2 to
// ?4 are the limits, ?5 is the server that asks, ?6 when a server that is lost was seen last, ?7
// how many runs of a repository may have begun since ?8. What a canceled run cleans up begins
// nothing.
#define CAISSON_NEXT_STEP                                                                   \
  "WITH busy AS (SELECT repo_key, agent_key, user_key, owner_id FROM steps "                \
  "  JOIN runs ON runs.id = steps.run_id "                                                  \
  "  WHERE steps.state = 'running' AND steps.lease_until > ?1), "                           \
  "by_repo AS (SELECT repo_key, count(*) AS n FROM busy GROUP BY repo_key), "               \
  "by_agent AS (SELECT agent_key, count(*) AS n FROM busy GROUP BY agent_key), "            \
  "by_user AS (SELECT user_key, count(*) AS n FROM busy GROUP BY user_key), "               \
  "by_owner AS (SELECT owner_id, count(*) AS n FROM busy GROUP BY owner_id) "               \
  "SELECT due.id FROM steps due JOIN runs ON runs.id = due.run_id "                         \
  "LEFT JOIN by_repo ON by_repo.repo_key = runs.repo_key AND runs.repo_key <> '' "          \
  "LEFT JOIN by_agent ON by_agent.agent_key = runs.agent_key AND runs.agent_key <> '' "     \
  "LEFT JOIN by_user ON by_user.user_key = runs.user_key AND runs.user_key <> '' "          \
  "LEFT JOIN by_owner ON by_owner.owner_id = runs.owner_id "                                \
  "WHERE ((due.state = 'ready' AND due.run_at <= ?1) "                                      \
  "  OR (due.state = 'running' AND due.lease_until <= ?1) "                                 \
  "  OR (due.state = 'waiting' AND due.wait_until <= ?1)) "                                 \
  "AND (?2 = 0 OR coalesce(by_repo.n, 0) < ?2) "                                            \
  "AND (?3 = 0 OR coalesce(by_agent.n, 0) < ?3) "                                           \
  "AND (?4 = 0 OR coalesce(by_user.n, 0) < ?4) "                                            \
  "AND (runs.node IN ('', ?5) "                                                             \
  "  OR runs.node IN (SELECT id FROM nodes WHERE seen_at < ?6)) "                           \
  "AND (runs.queue_expires_at IS NULL OR runs.queue_expires_at > ?1) "                      \
  "AND (?7 = 0 OR runs.started_at IS NOT NULL OR runs.cancel_at IS NOT NULL "               \
  "  OR runs.repo_key = '' OR runs.repo_key NOT IN (SELECT begun.repo_key FROM runs begun " \
  "    WHERE begun.started_at > ?8 GROUP BY begun.repo_key HAVING count(*) >= ?7)) "        \
  "ORDER BY due.priority DESC, coalesce(by_owner.n, 0), due.run_at, due.id LIMIT 1"

constexpr std::string_view kNextStep = CAISSON_NEXT_STEP;
// A step whose row somebody holds (a person in psql, say) is left for later instead of waited for.
constexpr std::string_view kNextFreeStep = CAISSON_NEXT_STEP " FOR UPDATE OF due SKIP LOCKED";

}  // namespace

Result<std::optional<StepRow>> ClaimStep(Transaction& transaction, const ClaimQuery& query) {
  std::string id;
  {
    Database& database = transaction.database();
    bool postgres = database.kind() == Database::Kind::kPostgres;
    TRY_ASSIGN(Statement next,
               database.Query(postgres ? kNextFreeStep : kNextStep, query.now, query.max_per_repo,
                              query.max_per_agent, query.max_per_user, query.node,
                              query.lost_before, query.max_starts_per_repo, query.starts_since));
    TRY_ASSIGN(bool found, next.Step());
    if (!found) return std::optional<StepRow>();
    id = next.Text(0);
  }
  TRY_ASSIGN(StepRow step, transaction.Need<StepRow>(id, "step"));
  step.state = "running";
  step.attempt += 1;
  step.fence += 1;
  step.lease_owner = query.lease_owner;
  step.lease_until = query.lease_until;
  if (!step.started_at) step.started_at = query.now;
  TRY(transaction.Update(step));
  return std::optional<StepRow>(std::move(step));
}

Result<std::optional<Time>> NextStepTime(Transaction& transaction) {
  TRY_ASSIGN(Statement next,
             transaction.database().Query(
                 "SELECT min(at) FROM ("
                 "SELECT min(run_at) AS at FROM steps WHERE state = 'ready' UNION ALL "
                 "SELECT min(lease_until) FROM steps WHERE state = 'running' UNION ALL "
                 "SELECT min(wait_until) FROM steps WHERE state = 'waiting') AS times"));
  TRY(next.Step());
  return next.OptionalTimeAt(0);
}

Result<std::optional<Time>> NextQueueExpiry(Transaction& transaction) {
  TRY_ASSIGN(Statement next, transaction.database().Query("SELECT min(queue_expires_at) FROM runs "
                                                          "WHERE queue_expires_at IS NOT NULL"));
  TRY(next.Step());
  return next.OptionalTimeAt(0);
}

}  // namespace caisson::store
