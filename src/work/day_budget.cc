#include "work/day_budget.h"

#include <algorithm>

#include "work/costs.h"

namespace caisson::work {

DayBudget DayAt(Time now, std::chrono::seconds day) {
  Time month = StartOf("month", now);
  Time next = StartOf("month", month + std::chrono::days(32));
  DayBudget budget{.begins_at = month + day * ((now - month) / day), .renews_at = next};
  budget.ends_at = std::min<Time>(budget.begins_at + day, next);
  auto left = next - budget.begins_at;
  budget.days = left / day + (left % day == Time::duration::zero() ? 0 : 1);
  return budget;
}

int64_t ShareOf(int64_t month_limit, int64_t spent_before, int64_t days) {
  return std::max<int64_t>(month_limit - spent_before, 0) / days;
}

Result<std::optional<DayBudget>> DayBudgetOf(store::Transaction& tx, const Config& config,
                                             const std::string& owner_id, Time now) {
  int64_t limit = Micros(std::strtod(config.budget_month_dollars.c_str(), nullptr));
  if (config.budget_action != "pace" || limit <= 0) return std::nullopt;
  DayBudget budget = DayAt(now, std::chrono::seconds(config.budget_day_s));
  TRY_ASSIGN(int64_t before,
             MicrosSpent(tx, owner_id, {.from = StartOf("month", now), .until = budget.begins_at}));
  TRY_ASSIGN(budget.spent, MicrosSpent(tx, owner_id, {.from = budget.begins_at}));
  budget.limit = ShareOf(limit, before, budget.days);
  return budget;
}

}  // namespace caisson::work
