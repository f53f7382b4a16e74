#include "api/usage_routes.h"

#include <algorithm>
#include <boost/json.hpp>

#include "store/sandbox_rows.h"
#include "store/work_rows.h"

namespace caisson::api {
namespace {

using store::Select;
using store::Transaction;

constexpr std::string_view kUsage = R"({
  "type": "object",
  "required": ["sandboxes", "agents", "tasks", "approvals_waiting", "cost_today_dollars",
               "cost_month_dollars", "budget_month_dollars"],
  "properties": {
    "sandboxes": {"type": "object", "required": ["running", "limit", "paused"], "properties": {
      "running": {"type": "integer"}, "paused": {"type": "integer"},
      "limit": {"type": "integer", "description": "of those that run; 0 = unlimited"}}},
    "agents": {"type": "object", "required": ["busy", "total"], "properties": {
      "busy": {"type": "integer"}, "total": {"type": "integer"}}},
    "tasks": {"type": "object", "required": ["in_progress", "queued"], "properties": {
      "in_progress": {"type": "integer", "description": "an agent works, or waits for somebody"},
      "queued": {"type": "integer", "description": "started, and waiting for an agent"}}},
    "approvals_waiting": {"type": "integer"},
    "cost_today_dollars": {"type": "number", "description": "UTC"},
    "cost_month_dollars": {"type": "number"},
    "budget_month_dollars": {"type": "number", "description": "0 = none"}}})";

struct Counts {
  int64_t agents = 0, busy_agents = 0, running_tasks = 0, queued_tasks = 0, approvals = 0;
  int64_t remote_running = 0, remote_paused = 0;  // sandboxes of another provider
};

Result<Counts> Count(Transaction& read, const std::string& owner_id) {
  using store::AgentRow, store::ApprovalRow, store::ExecutionRow, store::WorkSandboxRow;
  static const std::vector<std::string> kBusy = {"initializing", "cloning", "working", "committing",
                                                 "pushing"};
  static const std::vector<std::string> kAtWork = {"running", "waiting"};
  auto sandboxes = [&](const char* status) {
    return read.Count(Select<WorkSandboxRow>()
                          .Eq(&WorkSandboxRow::owner_id, owner_id)
                          .Eq(&WorkSandboxRow::status, status)
                          .NotEq(&WorkSandboxRow::provider, "local")
                          .IsNull(&WorkSandboxRow::destroyed_at));
  };
  auto agents = Select<AgentRow>().Eq(&AgentRow::owner_id, owner_id);
  auto executions = Select<ExecutionRow>().Eq(&ExecutionRow::owner_id, owner_id);
  Counts counts;
  TRY_ASSIGN(counts.agents, read.Count(agents));
  TRY_ASSIGN(counts.busy_agents, read.Count(agents.In(&AgentRow::status, kBusy)));
  TRY_ASSIGN(counts.queued_tasks,
             read.Count(Select(executions).Eq(&ExecutionRow::status, "queued")));
  TRY_ASSIGN(counts.running_tasks, read.Count(executions.In(&ExecutionRow::status, kAtWork)));
  TRY_ASSIGN(counts.approvals, read.Count(Select<ApprovalRow>()
                                              .Eq(&ApprovalRow::owner_id, owner_id)
                                              .Eq(&ApprovalRow::state, "pending")));
  TRY_ASSIGN(counts.remote_running, sandboxes("running"));
  TRY_ASSIGN(counts.remote_paused, sandboxes("paused"));
  return counts;
}

// The user's own limit, the lowest of their keys; else the server's.
Task<Result<int64_t>> SandboxLimit(UsageSources from, std::string user_id) {
  CO_TRY_ASSIGN(auto keys, co_await from.accounts.ListKeys(user_id));
  std::optional<int64_t> own;
  for (const store::ApiKey& key : keys)
    if (!key.revoked_at && key.limits.max_sandboxes)
      own = std::min(own.value_or(INT64_MAX), *key.limits.max_sandboxes);
  int64_t limit = own.value_or(from.config.max_sandboxes_per_key);
  int64_t of_all = from.config.max_sandboxes;
  if (limit == 0 || (of_all > 0 && of_all < limit)) limit = of_all;
  co_return limit;
}

Answer Show(UsageSources from, Call& call) {
  std::string user_id = call.who.user_id;
  CO_TRY_ASSIGN(Counts counts,
                co_await from.store.Read([=](Transaction& read) { return Count(read, user_id); }));
  CO_TRY_ASSIGN(int64_t limit, co_await SandboxLimit(from, user_id));
  CO_TRY_ASSIGN(work::Budget budget, co_await from.costs.GetBudget(user_id));
  CO_TRY_ASSIGN(auto today, co_await from.costs.Summary(user_id, "day", 1));
  auto local = from.manager.List({.key_id = user_id});
  int64_t paused = std::ranges::count(local, sandbox::State::kPaused, &sandbox::Info::state);
  int64_t running = static_cast<int64_t>(local.size()) - paused;
  co_return http::Response::Json(
      200,
      json::object{{"sandboxes", json::object{{"running", running + counts.remote_running},
                                              {"limit", limit},
                                              {"paused", paused + counts.remote_paused}}},
                   {"agents", json::object{{"busy", counts.busy_agents}, {"total", counts.agents}}},
                   {"tasks", json::object{{"in_progress", counts.running_tasks},
                                          {"queued", counts.queued_tasks}}},
                   {"approvals_waiting", counts.approvals},
                   {"cost_today_dollars", today.empty() ? 0.0 : today.back().dollars},
                   {"cost_month_dollars", budget.spent},
                   {"budget_month_dollars", budget.limit}});
}

}  // namespace

void AddUsageRoutes(Frame& frame, UsageSources sources) {
  frame.AddSchema("Usage", kUsage);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/usage",
             .tag = "costs",
             .id = "getUsage",
             .summary = "How much of everything you have and use now",
             .access = Access::kViewer,
             .responses = {{200, "Usage"}},
             .handler = [sources](Call& call) { return Show(sources, call); }});
}

}  // namespace caisson::api
