// A fresh sandbox for a holder whose sandbox has lived as long as one may.
#include <boost/json.hpp>

#include "base/log.h"
#include "flow/crash_point.h"
#include "sandbox/shield.h"
#include "work/sandboxes.h"

namespace caisson::work {

using store::Assign;
using store::Select;
using store::Transaction;

namespace {

std::string RenewalName(const SandboxRow& row) { return "renewal-" + row.id; }

}  // namespace

Task<Result<SandboxRow>> Sandboxes::Renew(std::string owner_id, std::string id, Renewed also) {
  CO_TRY_ASSIGN(SandboxRow row, co_await FindLive(std::move(owner_id), std::move(id)));
  co_return co_await sandbox::Shield(operations_, "renew a sandbox",
                                     RenewOnce(std::move(row), std::move(also)));
}

Task<Result<SandboxRow>> Sandboxes::RenewOnce(SandboxRow row, Renewed also) {
  // What an attempt before this one left does not hold what has happened since.
  CO_TRY_ASSIGN(auto left, co_await FindByHolder(row.holder_kind, NextHolder(row.holder_id)));
  if (left) CO_TRY(co_await DestroyRow(std::move(*left), "replaced"));
  co_await DropRenewal(row);
  // Whoever listens inside for it has to let go before it is saved.
  Stopped(row);
  CO_TRY_ASSIGN(std::string saved,
                co_await provider_.Snapshot(row.owner_id, row.backend_id, RenewalName(row)));
  flow::CrashPoint().Reached("agent", "after_snapshot");
  auto fresh = co_await CreateOnce({.owner_id = row.owner_id,
                                    .holder = {.kind = row.holder_kind,
                                               .id = NextHolder(row.holder_id),
                                               .agent_id = row.agent_id,
                                               .task_id = row.task_id},
                                    .template_name = saved,
                                    .repo_url = row.repo_url,
                                    .base_branch = row.base_branch});
  co_await DropSnapshot(row.owner_id, saved);
  CO_TRY(fresh);
  auto taken = co_await TakePlace(row, *fresh, std::move(also));
  if (!taken) {
    (void)co_await DestroyRow(std::move(*fresh), taken.error().message());
    co_return tl::unexpected(std::move(taken).error());
  }
  // Its row has ended, so Reconcile() finds what this misses.
  if (Status killed = co_await provider_.Kill(row.owner_id, row.backend_id); !killed)
    LogInfo("a sandbox that was replaced is ended later",
            {{"sandbox", row.id}, {"error", killed.error().message()}});
  co_return taken;
}

Task<void> Sandboxes::DropRenewal(SandboxRow row) {
  // Only the sandboxes of tasks are ever renewed.
  if (row.holder_kind != "task" || row.backend_id.empty()) co_return;
  co_await DropSnapshot(row.owner_id, RenewalName(row));
}

Task<void> Sandboxes::DropSnapshot(std::string owner_id, std::string name) {
  if (Status deleted = co_await provider_.DeleteSnapshot(std::move(owner_id), name); !deleted)
    LogWarn("a snapshot could not be deleted",
            {{"snapshot", name}, {"error", deleted.error().message()}});
}

Task<Result<SandboxRow>> Sandboxes::TakePlace(SandboxRow old, SandboxRow fresh, Renewed also) {
  std::string reason =
      fmt::format("it has lived as long as a sandbox may; the work goes on in {}", fresh.id);
  Time now = Now();
  auto event =
      About(old, "sandbox_terminated",
            {{"runtime_seconds", std::chrono::duration<double>(now - old.created_at).count()},
             {"reason", reason}});
  fresh.holder_id = old.holder_id;
  fresh.repo_path = old.repo_path;
  fresh.branch_name = old.branch_name;
  fresh.last_commit_sha = old.last_commit_sha;
  fresh.last_commit_message = old.last_commit_message;
  fresh.pr_number = old.pr_number;
  co_return co_await store_.Write([=, &log = log_](Transaction& write) -> Result<SandboxRow> {
    auto mine = Select<SandboxRow>().Eq(&SandboxRow::id, old.id).IsNull(&SandboxRow::destroyed_at);
    TRY_ASSIGN(int64_t ended, write.Set(mine, {Assign(&SandboxRow::status, "terminated"),
                                               Assign(&SandboxRow::last_error, reason),
                                               Assign(&SandboxRow::destroyed_at, now)}));
    if (ended == 0)
      return Fail(Code::kAborted, "the sandbox was ended while it was being replaced");
    TRY(log.Emit(write, event));
    TRY(write.Update(fresh));
    if (also) TRY(also(write, fresh));
    return fresh;
  });
}

}  // namespace caisson::work
