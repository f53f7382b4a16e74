// What work cost: sandbox time and model tokens, and the budget of a user.
#pragma once

#include <functional>

#include "store/work_rows.h"
#include "work/day_budget.h"
#include "work/platform.h"

namespace caisson::work {

struct CostFilter {
  std::string task_id, agent_id, squad_id, sandbox_id, execution_id, kind;  // "" = any
  std::optional<Time> from, until;
  Page page;
};
struct CostSum {
  std::string key;  // what it is the sum of: an id, a kind, the start of a period
  int64_t entries = 0;
  int64_t sandbox_ms = 0, cpu_ms = 0, tokens_in = 0, tokens_out = 0;
  double dollars = 0;

  void Add(const store::CostRow& row);
};
struct Budget {
  double limit = 0;  // dollars of this month; 0 = none
  double spent = 0;
  int64_t alert_pct = 75;
  std::string action = "warn";
  bool used_up() const { return limit > 0 && spent >= limit; }
};

class Costs {
 public:
  explicit Costs(Platform platform) : platform_(platform) {}

  // Of everybody if `owner_id` is "", here and in the next two. Newest first.
  Task<Result<Listed<store::CostRow>>> List(std::string owner_id, CostFilter filter);
  // `by`: "task", "agent", "squad", "user", "sandbox", "kind", "model"; most expensive first.
  Task<Result<std::vector<CostSum>>> Stats(std::string owner_id, CostFilter filter, std::string by);
  // `period`: "day", "week" (from Monday), "month", in UTC; the last `count` ones, oldest first.
  Task<Result<std::vector<CostSum>>> Summary(std::string owner_id, std::string period,
                                             int64_t count);
  Task<Result<Budget>> GetBudget(std::string owner_id);
  Task<Result<std::optional<DayBudget>>> GetDayBudget(std::string owner_id);

 private:
  Platform platform_;
};

// Once per id: an entry that is there is left alone. Tells "cost_recorded", and "budget_warning"
// when the alert's or the budget's mark is crossed.
Status RecordCost(store::Transaction& tx, Platform& platform, const store::CostRow& cost);
// What so much time of a sandbox costs.
double SandboxDollars(const Config& config, int64_t milliseconds);
// The dollars of all entries that match, in microdollars: what is divided has to add up.
int64_t Micros(double dollars);
Result<int64_t> MicrosSpent(store::Transaction& tx, const std::string& owner_id,
                            const CostFilter& filter);
// kResourceExhausted if the budget is used up and the setting is not just to warn.
Status CheckBudget(store::Transaction& tx, const Config& config, const std::string& owner_id);
// The first moment of the day, week or month that `time` lies in, in UTC.
Time StartOf(std::string_view period, Time time);

}  // namespace caisson::work
