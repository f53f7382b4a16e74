#include "work/costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "store/sum.h"
#include "work/event.h"
#include "work/json_fields.h"
#include "work/paging.h"

namespace caisson::work {
namespace {

using store::CostRow;
using store::Select;
using store::Transaction;

double Dollars(const std::string& setting) { return std::strtod(setting.c_str(), nullptr); }

Select<CostRow> Matching(const std::string& owner_id, const CostFilter& filter) {
  Select<CostRow> select;
  if (!owner_id.empty()) select.Eq(&CostRow::owner_id, owner_id);
  if (!filter.task_id.empty()) select.Eq(&CostRow::task_id, filter.task_id);
  if (!filter.agent_id.empty()) select.Eq(&CostRow::agent_id, filter.agent_id);
  if (!filter.squad_id.empty()) select.Eq(&CostRow::squad_id, filter.squad_id);
  if (!filter.sandbox_id.empty()) select.Eq(&CostRow::sandbox_id, filter.sandbox_id);
  if (!filter.execution_id.empty()) select.Eq(&CostRow::execution_id, filter.execution_id);
  if (!filter.kind.empty()) select.Eq(&CostRow::kind, filter.kind);
  if (filter.from) select.Greater(&CostRow::at, *filter.from - std::chrono::nanoseconds(1));
  if (filter.until) select.Less(&CostRow::at, *filter.until);
  return select;
}

std::string KeyOf(const CostRow& row, std::string_view by) {
  if (by == "task") return row.task_id.value_or("");
  if (by == "agent") return row.agent_id.value_or("");
  if (by == "squad") return row.squad_id.value_or("");
  if (by == "user") return row.owner_id;
  if (by == "sandbox") return row.sandbox_id;
  if (by == "model") return row.model;
  return row.kind;
}

// Sums all rows that match, a page at a time, so that a long history does not fill the memory.
Status SumUp(Transaction& tx, Select<CostRow> select,
             const std::function<void(const CostRow&)>& add) {
  constexpr int64_t kRows = 1'000;
  select.Order(&CostRow::at).Order(&CostRow::id).Limit(kRows);
  for (int64_t offset = 0;; offset += kRows) {
    TRY_ASSIGN(auto rows, tx.List(select.Offset(offset)));
    for (const CostRow& row : rows) add(row);
    if (rows.size() < static_cast<size_t>(kRows)) return {};
  }
}

Result<Budget> BudgetOf(Transaction& tx, const Config& config, const std::string& owner_id) {
  Budget budget{.limit = Dollars(config.budget_month_dollars),
                .alert_pct = config.budget_alert_pct,
                .action = config.budget_action};
  CostFilter filter{.from = StartOf("month", Now())};
  TRY_ASSIGN(budget.spent, store::Sum(tx, Matching(owner_id, filter), &CostRow::dollars));
  return budget;
}

store::EventRow CostEvent(const CostRow& cost, std::string type, json::object data) {
  store::ExecutionRow about{.id = cost.execution_id,
                            .owner_id = cost.owner_id,
                            .task_id = cost.task_id,
                            .agent_id = cost.agent_id,
                            .squad_id = cost.squad_id,
                            .sandbox_id = cost.sandbox_id};
  return About(about, std::move(type), std::move(data));
}

Status WarnOfBudget(Transaction& tx, Platform& platform, const CostRow& cost) {
  if (Dollars(platform.config.budget_month_dollars) <= 0) return {};
  TRY_ASSIGN(Budget budget, BudgetOf(tx, platform.config, cost.owner_id));
  double before = budget.spent - cost.dollars;
  for (int64_t percent : {budget.alert_pct, int64_t{100}}) {
    double mark = budget.limit * static_cast<double>(percent) / 100;
    if (before >= mark || budget.spent < mark) continue;
    TRY(platform.log.Emit(tx, CostEvent(cost, "budget_warning",
                                        {{"percent", percent},
                                         {"spent", budget.spent},
                                         {"budget", budget.limit},
                                         {"action", budget.action}})));
  }
  return {};
}

}  // namespace

void CostSum::Add(const CostRow& row) {
  ++entries;
  sandbox_ms += row.sandbox_ms;
  cpu_ms += row.cpu_ms;
  tokens_in += row.tokens_in;
  tokens_out += row.tokens_out;
  dollars += row.dollars;
}

Time StartOf(std::string_view period, Time time) {
  auto day = std::chrono::floor<std::chrono::days>(time);
  if (period == "week") {
    std::chrono::weekday weekday(day);
    return day - std::chrono::days(weekday.iso_encoding() - 1);
  }
  if (period == "month") {
    std::chrono::year_month_day date(day);
    return std::chrono::sys_days(date.year() / date.month() / 1);
  }
  return day;
}

double SandboxDollars(const Config& config, int64_t milliseconds) {
  return Dollars(config.sandbox_hour_dollars) * static_cast<double>(milliseconds) / 3'600'000;
}

int64_t Micros(double dollars) { return std::llround(dollars * 1e6); }

Result<int64_t> MicrosSpent(Transaction& tx, const std::string& owner_id,
                            const CostFilter& filter) {
  TRY_ASSIGN(double dollars, store::Sum(tx, Matching(owner_id, filter), &CostRow::dollars));
  return Micros(dollars);
}

Status RecordCost(Transaction& tx, Platform& platform, const CostRow& cost) {
  TRY_ASSIGN(auto known, tx.Get<CostRow>(cost.id));
  if (known) return {};
  TRY(tx.Insert(cost));
  TRY(platform.log.Emit(tx, CostEvent(cost, "cost_recorded",
                                      {{"kind", cost.kind},
                                       {"model", cost.model},
                                       {"sandbox_ms", cost.sandbox_ms},
                                       {"cpu_ms", cost.cpu_ms},
                                       {"tokens_in", cost.tokens_in},
                                       {"tokens_out", cost.tokens_out},
                                       {"dollars", cost.dollars}})));
  return WarnOfBudget(tx, platform, cost);
}

Status CheckBudget(Transaction& tx, const Config& config, const std::string& owner_id) {
  if (config.budget_action == "warn" || Dollars(config.budget_month_dollars) <= 0) return {};
  TRY_ASSIGN(Budget budget, BudgetOf(tx, config, owner_id));
  if (budget.used_up())
    return Fail(Code::kResourceExhausted,
                "the budget of this month is used up: {:.2f} of {:.2f} dollars", budget.spent,
                budget.limit);
  return {};
}

Task<Result<Listed<CostRow>>> Costs::List(std::string owner_id, CostFilter filter) {
  co_return co_await platform_.store.Read(
      [owner_id, filter](Transaction& tx) -> Result<Listed<CostRow>> {
        Select<CostRow> select = Matching(owner_id, filter);
        return ListPage(tx, select.Order(&CostRow::at, true).Order(&CostRow::id), filter.page);
      });
}

Task<Result<std::vector<CostSum>>> Costs::Stats(std::string owner_id, CostFilter filter,
                                                std::string by) {
  constexpr std::array kWays = {"task", "agent", "squad", "user", "sandbox", "kind", "model"};
  if (std::ranges::find(kWays, by) == kWays.end())
    co_return Fail(Code::kInvalidArgument, "costs are summed by {}, not by '{}'",
                   fmt::join(kWays, ", "), by);
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<std::vector<CostSum>> {
    std::map<std::string, CostSum> sums;
    TRY(SumUp(tx, Matching(owner_id, filter), [&](const CostRow& row) {
      CostSum& sum = sums[KeyOf(row, by)];
      sum.key = KeyOf(row, by);
      sum.Add(row);
    }));
    std::vector<CostSum> list;
    for (auto& [key, sum] : sums) list.push_back(std::move(sum));
    std::ranges::sort(list, [](const CostSum& a, const CostSum& b) {
      return std::tie(b.dollars, a.key) < std::tie(a.dollars, b.key);
    });
    return list;
  });
}

Task<Result<std::vector<CostSum>>> Costs::Summary(std::string owner_id, std::string period,
                                                  int64_t count) {
  if (period != "day" && period != "week" && period != "month")
    co_return Fail(Code::kInvalidArgument, "a period is day, week or month, not '{}'", period);
  std::vector<Time> starts{StartOf(period, Now())};
  while (static_cast<int64_t>(starts.size()) < count)
    starts.insert(starts.begin(), StartOf(period, starts.front() - std::chrono::hours(1)));
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<std::vector<CostSum>> {
    std::vector<CostSum> sums;
    for (Time start : starts) sums.push_back({.key = FormatTime(start)});
    TRY(SumUp(tx, Matching(owner_id, {.from = starts.front()}), [&](const CostRow& row) {
      auto after = std::ranges::upper_bound(starts, row.at);
      sums[static_cast<size_t>(after - starts.begin() - 1)].Add(row);
    }));
    return sums;
  });
}

Task<Result<Budget>> Costs::GetBudget(std::string owner_id) {
  co_return co_await platform_.store.Read(
      [this, owner_id](Transaction& tx) { return BudgetOf(tx, platform_.config, owner_id); });
}

Task<Result<std::optional<DayBudget>>> Costs::GetDayBudget(std::string owner_id) {
  co_return co_await platform_.store.Read([this, owner_id](Transaction& tx) {
    return DayBudgetOf(tx, platform_.config, owner_id, Now());
  });
}

}  // namespace caisson::work
