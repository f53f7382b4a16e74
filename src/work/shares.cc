#include "work/shares.h"

#include "base/encoding.h"
#include "base/id.h"
#include "store/sandbox_rows.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::Select;
using store::TaskRow;
using store::TaskShareRow;
using store::Transaction;
using store::WorkSandboxRow;

constexpr size_t kTokenBytes = 24;

std::string HashOf(std::string_view token) { return HexEncode(Sha256(token)); }

Select<TaskShareRow> GoodOnes(const std::string& task_id) {
  return Select<TaskShareRow>()
      .Eq(&TaskShareRow::task_id, task_id)
      .Greater(&TaskShareRow::expires_at, Now())
      .Order(&TaskShareRow::created_at, true)
      .Order(&TaskShareRow::id);
}

Result<std::vector<std::string>> SandboxesOf(Transaction& tx, const std::string& task_id) {
  TRY_ASSIGN(auto rows, tx.List(Select<WorkSandboxRow>().Eq(&WorkSandboxRow::task_id, task_id)));
  std::vector<std::string> ids;
  for (const WorkSandboxRow& row : rows)
    for (const std::string& id : {row.id, row.backend_id})
      if (!id.empty()) ids.push_back(id);
  return ids;
}

}  // namespace

Task<Result<NewShare>> Shares::Create(std::string owner_id, std::string task_id,
                                      std::optional<int64_t> wanted) {
  const Config& config = platform_.config;
  int64_t hours = wanted.value_or(config.share_default_hours);
  if (hours < 1 || hours > config.share_max_hours)
    co_return Fail(Code::kInvalidArgument, "a link is good for 1 to {} hours",
                   config.share_max_hours);
  NewShare share{.token = RandomHex(kTokenBytes)};
  share.row = {.id = RandomUuid(),
               .task_id = task_id,
               .token_hash = HashOf(share.token),
               .created_at = Now(),
               .expires_at = Now() + std::chrono::hours(hours)};
  CO_TRY(co_await platform_.store.Write([=, &config](Transaction& tx) -> Status {
    TRY(NeedTask(tx, owner_id, task_id));
    TRY_ASSIGN(int64_t count, tx.Count(GoodOnes(task_id)));
    if (count >= config.share_max_per_task)
      return Fail(Code::kResourceExhausted, "the task has {} links already; revoke one first",
                  count);
    return tx.Insert(share.row);
  }));
  co_return share;
}

Task<Result<std::vector<TaskShareRow>>> Shares::List(std::string owner_id, std::string task_id) {
  co_return co_await platform_.store.Read(
      [owner_id, task_id](Transaction& tx) -> Result<std::vector<TaskShareRow>> {
        TRY(NeedTask(tx, owner_id, task_id));
        return tx.List(GoodOnes(task_id));
      });
}

Task<Status> Shares::Revoke(std::string owner_id, std::string task_id, std::string id) {
  co_return co_await platform_.store.Write([=](Transaction& tx) -> Status {
    TRY(NeedTask(tx, owner_id, task_id));
    TRY_ASSIGN(
        int64_t gone,
        tx.Delete(
            Select<TaskShareRow>().Eq(&TaskShareRow::id, id).Eq(&TaskShareRow::task_id, task_id)));
    if (gone == 0) return Fail(Code::kNotFound, "the task has no link {}", id);
    return {};
  });
}

Task<Result<SharedTask>> Shares::Open(std::string token) {
  co_return co_await platform_.store.Read(
      [hash = HashOf(token)](Transaction& tx) -> Result<SharedTask> {
        TRY_ASSIGN(auto share, tx.First(Select<TaskShareRow>()
                                            .Eq(&TaskShareRow::token_hash, hash)
                                            .Greater(&TaskShareRow::expires_at, Now())));
        // SECURITY: the token is not repeated, and nobody learns whether it ever was one.
        if (!share) return Fail(Code::kNotFound, "this link leads nowhere (any more)");
        SharedTask shared;
        TRY_ASSIGN(shared.task, tx.Need<TaskRow>(share->task_id, "task"));
        TRY_ASSIGN(shared.sandbox_ids, SandboxesOf(tx, share->task_id));
        return shared;
      });
}

}  // namespace caisson::work
