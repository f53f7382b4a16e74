// The status of a session, and the time that its sandbox has run.
#pragma once

#include "store/session_rows.h"
#include "work/platform.h"

namespace caisson::session {

// kNotFound also if it is somebody else's, or is being deleted. `owner_id` "" = whoever's.
Result<store::SessionRow> NeedSession(store::Transaction& tx, const std::string& owner_id,
                                      const std::string& id);

struct Condition {
  std::string status, reason;
  std::string error = {};
};
// Writes the row, counts the time its sandbox ran, and tells it if it is another status or reason.
Status SetStatus(store::Transaction& tx, work::Platform& platform, store::SessionRow& session,
                 const Condition& condition);

// How long its sandbox has run so far.
int64_t RunningMs(const store::SessionRow& session, Time now);

// Why a session that is "archived" waits for its end.
inline constexpr std::string_view kDeleting = "deleting";
// Why the sandbox of a session is put away whose agent waits for the next day: it is not idle.
inline constexpr std::string_view kResting = "budget";

}  // namespace caisson::session
