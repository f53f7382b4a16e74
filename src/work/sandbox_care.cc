// Looking after sandboxes: what was interrupted is finished, what is lost is found.
#include "base/log.h"
#include "work/executions.h"
#include "work/sandbox_time.h"
#include "work/sandboxes.h"

namespace caisson::work {
namespace {

using store::Select;
using store::Transaction;

constexpr std::chrono::milliseconds kHealthTimeout{5'000};
constexpr int kMaxMissed = 2;
// Another server of the same database may be at work on it.
constexpr std::chrono::minutes kUnfinished{10};
constexpr int64_t kBatch = 500;

// By a user, or with a preview that comes back when somebody wants to see it.
bool IsPutAway(const SandboxRow& row) {
  return row.status == "paused" && (row.holder_kind == "user" || row.holder_kind == "build");
}

Task<Status> AskHealth(sandbox::Provider& provider, SandboxRow row) {
  CO_TRY_ASSIGN(auto envd, co_await provider.Envd(row.owner_id, row.backend_id));
  CO_TRY(co_await envd.ListProcesses());
  co_return Status();
}

}  // namespace

Task<Result<std::vector<SandboxRow>>> Sandboxes::LiveRows() {
  std::vector<SandboxRow> rows;
  // Those of no server are old ones, or the provider's.
  std::vector<std::string> mine = {"", node_};
  for (std::string after;;) {
    CO_TRY_ASSIGN(auto some, co_await store_.Read([after, mine](Transaction& read) {
      return read.List(Select<SandboxRow>()
                           .IsNull(&SandboxRow::destroyed_at)
                           .In(&SandboxRow::node, mine)
                           .Greater(&SandboxRow::id, after)
                           .Order(&SandboxRow::id)
                           .Limit(kBatch));
    }));
    bool last = static_cast<int64_t>(some.size()) < kBatch;
    if (!last) after = some.back().id;
    for (SandboxRow& row : some)
      if (row.provider == provider_.name()) rows.push_back(std::move(row));
    if (last) co_return rows;
  }
}

Task<Status> Sandboxes::Reconcile() {
  // The provider is asked first: a sandbox that is made after this has its row in what follows.
  CO_TRY_ASSIGN(auto there,
                co_await provider_.List("", {{std::string(kInstallationKey), installation_}}));
  CO_TRY_ASSIGN(auto rows, co_await LiveRows());
  std::map<std::string, std::string> states;
  for (const auto& info : there) states[info.id] = info.state;
  std::set<std::string> known;
  for (const SandboxRow& row : rows) {
    known.insert(row.id);
    known.insert(row.backend_id);
  }
  for (const auto& info : there) {
    auto row = info.metadata.find(std::string(kRowKey));
    bool mine = known.contains(info.id) || row == info.metadata.end() ||
                known.contains(row->second) || busy_.contains(row->second);
    if (mine) continue;
    LogWarn("a sandbox that nobody knows is ended", {{"sandbox", info.id}});
    if (Status killed = co_await provider_.Kill(info.owner_id, info.id); !killed)
      LogWarn("a sandbox that nobody knows could not be ended",
              {{"sandbox", info.id}, {"error", killed.error().message()}});
  }
  for (SandboxRow& row : rows) {
    std::string id = row.id;
    if (Status done = co_await ReconcileRow(std::move(row), states); !done)
      LogWarn("a sandbox's row could not be set right",
              {{"sandbox", id}, {"error", done.error().message()}});
  }
  co_return Status();
}

Task<Status> Sandboxes::ReconcileRow(SandboxRow row,
                                     const std::map<std::string, std::string>& states) {
  if (busy_.contains(row.id)) co_return Status();
  bool settled = row.status == "running" || row.status == "paused" || row.status == "error";
  bool shared = row.node.empty() && !config_.database_url.starts_with("sqlite:");
  if (!settled && shared && Now() - row.last_used_at < kUnfinished) co_return Status();
  if (row.status == "terminating") co_return co_await DestroyRow(std::move(row), "request");
  if (row.backend_id.empty()) {
    co_await KillByRow(row.owner_id, row.id);
    co_return co_await WriteEnd(std::move(row), "error",
                                "the server stopped while the sandbox was being made");
  }
  auto listed = states.find(row.backend_id);
  std::string state = listed == states.end() ? "" : listed->second;
  if (state.empty()) {
    auto info = co_await provider_.Get(row.owner_id, row.backend_id);
    if (!info && info.error().code() == Code::kNotFound)
      co_return co_await WriteEnd(std::move(row), "terminated", "gone");
    if (!info) co_return tl::unexpected(std::move(info).error());
    state = info->state;
  }
  if (row.status == "error" || row.status == state) co_return Status();
  if (state == "paused") Stopped(row);
  co_return co_await Move(row, {row.status}, state);
}

Task<Result<std::set<std::string>>> Sandboxes::Resting(std::vector<SandboxRow> rows) {
  std::erase_if(rows, [](const SandboxRow& row) {
    return row.holder_kind != "task" || !row.paused_at || row.holder_id.empty();
  });
  co_return co_await store_.Read([rows](Transaction& read) -> Result<std::set<std::string>> {
    std::set<std::string> resting;
    for (const SandboxRow& row : rows) {
      TRY_ASSIGN(auto execution, read.Get<store::ExecutionRow>(row.holder_id));
      if (execution && IsLive(execution->status)) resting.insert(row.id);
    }
    return resting;
  });
}

Task<Result<std::vector<SandboxRow>>> Sandboxes::CleanUpStale(bool dry_run) {
  Time now = Now();
  CO_TRY_ASSIGN(auto rows, co_await LiveRows());
  CO_TRY_ASSIGN(auto resting, co_await Resting(rows));
  std::erase_if(rows, [&](const SandboxRow& row) {
    auto age = now - row.created_at - std::chrono::milliseconds(row.paused_ms);
    // Conversations, what is put away, and what waits with its task stay.
    return age < std::chrono::seconds(config_.task_sandbox_timeout_s) ||
           row.holder_kind == "session" || IsPutAway(row) || resting.contains(row.id);
  });
  if (dry_run) co_return rows;
  for (const SandboxRow& row : rows)
    if (Status ended = co_await DestroyRow(row, "stale"); !ended)
      LogWarn("an old sandbox could not be ended",
              {{"sandbox", row.id}, {"error", ended.error().message()}});
  co_return rows;
}

Task<void> Sandboxes::Care() {
  for (;;) {
    co_await SleepFor(std::chrono::seconds(config_.reconcile_interval_s));
    if (Status done = co_await Reconcile(); !done)
      LogWarn("sandboxes could not be compared with their rows",
              {{"provider", provider_.name()}, {"error", done.error().message()}});
    if (auto ended = co_await CleanUpStale(/*dry_run=*/false); !ended)
      LogWarn("old sandboxes could not be looked for", {{"error", ended.error().message()}});
  }
}

Task<void> Sandboxes::WatchHealth() {
  for (;;) {
    co_await SleepFor(std::chrono::seconds(config_.health_interval_s));
    co_await CheckHealth();
  }
}

Task<void> Sandboxes::CheckHealth() {
  auto rows = co_await LiveRows();
  if (!rows) co_return;
  for (SandboxRow& row : *rows)
    if (row.holder_kind == "task" && (row.status == "running" || row.status == "error") &&
        !row.backend_id.empty())
      co_await CheckOne(std::move(row));
}

Task<void> Sandboxes::CheckOne(SandboxRow row) {
  Status well = co_await WithDeadline(kHealthTimeout, "asking the sandbox whether it is well",
                                      AskHealth(provider_, row));
  if (well) {
    missed_.erase(row.id);
    if (row.status == "error") (void)co_await Move(row, {"error"}, "running");
    co_return;
  }
  if (well.error().code() == Code::kNotFound) {
    (void)co_await WriteEnd(std::move(row), "terminated", "gone");
    co_return;
  }
  if (well.error().code() == Code::kFailedPrecondition) co_return;  // it is paused
  if (++missed_[row.id] < kMaxMissed || row.status == "error") co_return;
  LogWarn("a sandbox does not answer", {{"sandbox", row.id},
                                        {"task_id", row.task_id.value_or("")},
                                        {"agent_id", row.agent_id.value_or("")},
                                        {"error", well.error().message()}});
  (void)co_await SetError(std::move(row), "health", well.error().message());
}

}  // namespace caisson::work
