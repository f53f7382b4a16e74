// How long rows are kept that only grow in number.
#pragma once

#include "store/database.h"

namespace caisson::store {

// 0 = for ever.
struct Retention {
  int64_t days = 0;  // ended sandboxes with their events, git operations, webhook deliveries
  int64_t events_days = 0;
  int64_t audit_days = 0;
  int64_t idempotency_hours = 0;  // answers kept for Idempotency-Key
};

// Deletes what is older, and logins that have ended, a bounded number of rows of each table at a
// time. True: more is left. Failures are logged.
bool DeleteOld(Database& database, const Retention& retention);

}  // namespace caisson::store
