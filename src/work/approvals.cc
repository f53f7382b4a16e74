#include "work/approvals.h"

#include "work/event.h"
#include "work/json_fields.h"
#include "work/paging.h"

namespace caisson::work {

using store::ApprovalRow;
using store::Select;
using store::Transaction;

std::string ApprovalKey(const std::string& id) { return "approval:" + id; }

Status RequestApproval(Transaction& tx, Platform& platform, const ApprovalRow& approval) {
  TRY_ASSIGN(auto known, tx.Get<ApprovalRow>(approval.id));
  if (known) return {};
  TRY(tx.Insert(approval));
  TRY(platform.log.Emit(tx, About(approval, "approval_requested",
                                  {{"approval_id", approval.id},
                                   {"kind", approval.kind},
                                   {"title", approval.title},
                                   {"details", ParseObject(approval.details)}})));
  return {};
}

Task<Result<Listed<ApprovalRow>>> Approvals::List(std::string owner_id, ApprovalFilter filter) {
  co_return co_await platform_.store.Read(
      [owner_id, filter](Transaction& tx) -> Result<Listed<ApprovalRow>> {
        Select<ApprovalRow> select;
        select.Eq(&ApprovalRow::owner_id, owner_id);
        if (!filter.state.empty()) select.Eq(&ApprovalRow::state, filter.state);
        if (!filter.squad_id.empty()) select.Eq(&ApprovalRow::squad_id, filter.squad_id);
        if (!filter.task_id.empty()) select.Eq(&ApprovalRow::task_id, filter.task_id);
        select.Order(&ApprovalRow::created_at, true).Order(&ApprovalRow::id);
        return ListPage(tx, select, filter.page);
      });
}

Task<Result<ApprovalRow>> Approvals::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([owner_id, id](Transaction& tx) -> Result<ApprovalRow> {
    TRY_ASSIGN(auto row, tx.Get<ApprovalRow>(id));
    if (!row || row->owner_id != owner_id)
      return Fail(Code::kNotFound, "there is no approval request {}", id);
    return std::move(*row);
  });
}

Task<Result<ApprovalRow>> Approvals::Decide(std::string owner_id, std::string id, bool approve,
                                            std::string user_id, std::string comment) {
  CO_TRY(CheckText(comment, "comment", 0, static_cast<size_t>(platform_.config.api_max_string)));
  auto decided = co_await platform_.store.Write([=, this](Transaction& tx) -> Result<ApprovalRow> {
    TRY_ASSIGN(auto row, tx.Get<ApprovalRow>(id));
    if (!row || row->owner_id != owner_id)
      return Fail(Code::kNotFound, "there is no approval request {}", id);
    std::string state = approve ? "approved" : "rejected";
    if (row->state == state) return std::move(*row);
    if (row->state != "pending")
      return Fail(Code::kFailedPrecondition, "this request was {} already", row->state);
    row->state = state;
    row->decided_by = user_id;
    row->comment = comment;
    row->decided_at = Now();
    TRY(tx.Update(*row));
    TRY(platform_.flow.Signal(tx, ApprovalKey(id), {{"state", state}, {"comment", comment}}));
    TRY(platform_.log.Emit(tx, About(*row, "approval_decided",
                                     {{"approval_id", id},
                                      {"state", state},
                                      {"comment", comment},
                                      {"decided_by", user_id}})));
    return std::move(*row);
  });
  platform_.flow.Wake();
  co_return decided;
}

}  // namespace caisson::work
