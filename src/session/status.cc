#include "session/status.h"

#include "session/event.h"
#include "work/costs.h"

namespace caisson::session {
namespace {

using store::SessionRow;
using store::Transaction;

// The time since it was started or woken goes to the session's sum and to the user's costs.
Status CountTime(Transaction& tx, work::Platform& platform, SessionRow& session, Time now) {
  if (!session.running_since) return {};
  int64_t ran = RunningMs(session, now) - session.running_ms;
  store::CostRow cost{.id = fmt::format("{}:{}", session.id, UnixNanos(*session.running_since)),
                      .owner_id = session.owner_id,
                      .sandbox_id = session.sandbox_id,
                      .kind = "sandbox",
                      .sandbox_ms = ran,
                      .dollars = work::SandboxDollars(platform.config, ran),
                      .at = now};
  session.running_ms += ran;
  session.running_since.reset();
  return work::RecordCost(tx, platform, cost);
}

}  // namespace

Result<SessionRow> NeedSession(Transaction& tx, const std::string& owner_id,
                               const std::string& id) {
  TRY_ASSIGN(auto session, tx.Get<SessionRow>(id));
  // SECURITY: someone else's looks like one that does not exist.
  if (!session || session->status_reason == kDeleting ||
      (!owner_id.empty() && session->owner_id != owner_id))
    return Fail(Code::kNotFound, "there is no session {}", id);
  return std::move(*session);
}

Status SetStatus(Transaction& tx, work::Platform& platform, SessionRow& session,
                 const Condition& condition) {
  bool told = session.status == condition.status && session.error == condition.error &&
              (session.status == "active" || session.status_reason == condition.reason);
  bool runs = condition.status == "active";
  if (runs && !session.running_since) session.running_since = Now();
  if (!runs) TRY(CountTime(tx, platform, session, Now()));
  session.status = condition.status;
  session.status_reason = condition.reason;
  session.error = condition.error;
  if (condition.status != "archived") session.archived_at.reset();
  TRY(tx.Update(session));
  if (told) return {};
  TRY(platform.log.Emit(tx, About(session, "session_updated", SessionData(session))));
  return {};
}

int64_t RunningMs(const SessionRow& session, Time now) {
  if (!session.running_since || now < *session.running_since) return session.running_ms;
  return session.running_ms +
         std::chrono::duration_cast<std::chrono::milliseconds>(now - *session.running_since)
             .count();
}

}  // namespace caisson::session
