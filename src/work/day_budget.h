// The month's budget of a user, day by day: what is left of it is shared out evenly among the days
// until it is renewed, so that built-in agents do not spend all of it in the first one.
#pragma once

#include <optional>

#include "base/config.h"
#include "base/time.h"
#include "store/transaction.h"

namespace caisson::work {

// In microdollars.
struct DayBudget {
  int64_t limit = 0;  // of this day
  int64_t spent = 0;  // in it so far
  int64_t days = 1;   // until the renewal, this one included
  Time begins_at, ends_at;
  Time renews_at;  // the month's end

  bool used_up() const { return spent >= limit; }
  // More than so many percent of the limit.
  bool overrun(int64_t percent) const { return spent * 100 > limit * percent; }
  // When there is something to spend again.
  Time wakes_at() const { return limit > 0 ? ends_at : renews_at; }
};

// Which day it is, without the money.
DayBudget DayAt(Time now, std::chrono::seconds day);
// What was left when the day began, divided by the days.
int64_t ShareOf(int64_t month_limit, int64_t spent_before, int64_t days);

// Nothing if the budget is not shared out (budget_action is not "pace", or there is none).
Result<std::optional<DayBudget>> DayBudgetOf(store::Transaction& tx, const Config& config,
                                             const std::string& owner_id, Time now);

}  // namespace caisson::work
