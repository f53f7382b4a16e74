#include "api/cost_routes.h"

#include "api/work_codec.h"

namespace caisson::api {
namespace {

using work::Work;

constexpr std::string_view kCost = R"({"type":"object","properties":{
  "id":{"type":"string"},"squad_id":{"type":["string","null"]},
  "agent_id":{"type":["string","null"]},"task_id":{"type":["string","null"]},
  "execution_id":{"type":"string"},"sandbox_id":{"type":"string"},"kind":{"type":"string"},
  "model":{"type":"string"},"sandbox_ms":{"type":"integer"},"cpu_ms":{"type":"integer"},
  "tokens_in":{"type":"integer"},"tokens_out":{"type":"integer"},"dollars":{"type":"number"},
  "at":{"type":"string","format":"date-time"}}})";
constexpr std::string_view kCostSum = R"({"type":"object","properties":{
  "key":{"type":"string","description":"an id, a kind, or the start of a period"},
  "entries":{"type":"integer"},"sandbox_ms":{"type":"integer"},"cpu_ms":{"type":"integer"},
  "tokens_in":{"type":"integer"},"tokens_out":{"type":"integer"},"dollars":{"type":"number"}}})";
constexpr std::string_view kBudget = R"({"type":"object","properties":{
  "limit":{"type":"number","description":"dollars of this month; 0 = none"},
  "spent":{"type":"number"},"alert_percent":{"type":"integer"},
  "action":{"type":"string","enum":["warn","stop","pace"]},"used_up":{"type":"boolean"},
  "day":{"type":"object","description":"with pace: the part of this day",
    "properties":{"limit_microdollars":{"type":"integer"},"spent_microdollars":{"type":"integer"},
      "days":{"type":"integer","description":"until the renewal, this one included"},
      "used_up":{"type":"boolean"},
      "ends_at":{"type":"string","format":"date-time"},
      "renews_at":{"type":"string","format":"date-time"}}}}})";

Result<std::optional<Time>> TimeParameter(const Call& call, std::string_view name) {
  std::string text = TextParameter(call, name);
  if (text.empty()) return std::optional<Time>();
  auto time = ParseTime(text);
  if (!time)
    return Fail(Code::kInvalidArgument, "{} must be a time like 2026-01-31T12:00:00Z", name);
  return std::optional<Time>(*time);
}

Result<work::CostFilter> FilterOf(const Call& call) {
  work::CostFilter filter{.task_id = TextParameter(call, "task_id"),
                          .agent_id = TextParameter(call, "agent_id"),
                          .squad_id = TextParameter(call, "squad_id"),
                          .sandbox_id = TextParameter(call, "sandbox_id"),
                          .execution_id = TextParameter(call, "execution_id"),
                          .kind = TextParameter(call, "kind"),
                          .page = PageOf(call)};
  TRY_ASSIGN(filter.from, TimeParameter(call, "from"));
  TRY_ASSIGN(filter.until, TimeParameter(call, "until"));
  return filter;
}

http::Response Sums(const std::vector<work::CostSum>& sums) {
  json::array items;
  for (const work::CostSum& sum : sums) items.push_back(Encode(sum));
  return http::Response::Json(200, json::object{{"sums", std::move(items)}});
}

Answer List(Work& work, Call& call) {
  CO_TRY_ASSIGN(work::CostFilter filter, FilterOf(call));
  CO_TRY_ASSIGN(auto listed, co_await work.costs.List(call.owner(), filter));
  co_return ListResponse("costs", listed);
}

Answer Stats(Work& work, Call& call) {
  CO_TRY_ASSIGN(work::CostFilter filter, FilterOf(call));
  std::string by = TextParameter(call, "by");
  CO_TRY_ASSIGN(auto sums,
                co_await work.costs.Stats(call.owner(), filter, by.empty() ? "task" : by));
  co_return Sums(sums);
}

Answer Summary(Work& work, Call& call) {
  std::string period = TextParameter(call, "period");
  CO_TRY_ASSIGN(auto sums,
                co_await work.costs.Summary(call.owner(), period.empty() ? "day" : period,
                                            NumberParameter(call, "count", 30)));
  co_return Sums(sums);
}

Answer GetBudget(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto budget, co_await work.costs.GetBudget(call.who.user_id));
  json::object body{{"limit", budget.limit},
                    {"spent", budget.spent},
                    {"alert_percent", budget.alert_pct},
                    {"action", budget.action},
                    {"used_up", budget.used_up()}};
  CO_TRY_ASSIGN(auto day, co_await work.costs.GetDayBudget(call.who.user_id));
  if (day)
    body["day"] = {{"limit_microdollars", day->limit},
                   {"spent_microdollars", day->spent},
                   {"days", day->days},
                   {"used_up", day->used_up()},
                   {"ends_at", FormatTime(day->ends_at)},
                   {"renews_at", FormatTime(day->renews_at)}};
  co_return http::Response::Json(200, std::move(body));
}

std::vector<Parameter> Filters() {
  return {{.name = "task_id", .description = "of this task"},
          {.name = "agent_id", .description = "of this agent"},
          {.name = "squad_id", .description = "of this squad"},
          {.name = "sandbox_id", .description = "of this sandbox"},
          {.name = "execution_id", .description = "of this attempt"},
          {.name = "kind", .description = "only those", .values = {"sandbox", "model"}},
          {.name = "from", .description = "not before this time (RFC 3339)"},
          {.name = "until", .description = "before this time (RFC 3339)"},
          kAllParameter};
}

}  // namespace

void AddCostRoutes(Frame& frame, Work& work) {
  frame.AddSchema("Cost", kCost);
  frame.AddSchema("CostList", ListSchema("costs", "Cost"));
  frame.AddSchema("CostSum", kCostSum);
  frame.AddSchema("CostSumList", R"({"type":"object","required":["sums"],"properties":{
    "sums":{"type":"array","items":{"$ref":"#/components/schemas/CostSum"}}}})");
  frame.AddSchema("Budget", kBudget);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/costs",
             .tag = "costs",
             .id = "listCosts",
             .summary = "What your work cost, newest first",
             .access = Access::kViewer,
             .parameters = WithPage(Filters()),
             .responses = {{200, "CostList"}},
             .handler = Bind(work, List)});
  std::vector<Parameter> stats = Filters();
  stats.push_back({.name = "by",
                   .description = "what to sum by; task if it is not said",
                   .values = {"task", "agent", "squad", "user", "sandbox", "kind", "model"}});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/costs/stats",
             .tag = "costs",
             .id = "costStats",
             .summary = "Sums, the most expensive first",
             .access = Access::kViewer,
             .parameters = std::move(stats),
             .responses = {{200, "CostSumList"}},
             .handler = Bind(work, Stats)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/costs/summary",
             .tag = "costs",
             .id = "costSummary",
             .summary = "Sums per day, week or month (UTC), oldest first",
             .access = Access::kViewer,
             .parameters = {{.name = "period",
                             .description = "day if it is not said",
                             .values = {"day", "week", "month"}},
                            {.name = "count",
                             .type = "integer",
                             .description = "how many periods; 30 if it is not said",
                             .min = 1,
                             .max = 366},
                            kAllParameter},
             .responses = {{200, "CostSumList"}},
             .handler = Bind(work, Summary)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/costs/budget",
             .tag = "costs",
             .id = "getBudget",
             .summary = "The budget of this month and what is spent of it",
             .access = Access::kViewer,
             .responses = {{200, "Budget"}},
             .handler = Bind(work, GetBudget)});
}

}  // namespace caisson::api
