#include "api/approval_routes.h"

#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::Work;

constexpr std::string_view kApproval = R"({"type":"object","properties":{
  "id":{"type":"string"},"squad_id":{"type":["string","null"]},
  "task_id":{"type":["string","null"]},"run_id":{"type":"string"},"kind":{"type":"string"},
  "title":{"type":"string"},"details":{"type":"object"},
  "state":{"type":"string","enum":["pending","approved","rejected","expired"]},
  "decided_by":{"type":"string"},"comment":{"type":"string"},
  "created_at":{"type":"string","format":"date-time"},
  "decided_at":{"type":["string","null"],"format":"date-time"}}})";

Answer ListFor(Work& work, Call& call, std::string squad_id) {
  work::ApprovalFilter filter{.state = TextParameter(call, "state"),
                              .squad_id = std::move(squad_id),
                              .task_id = TextParameter(call, "task_id"),
                              .page = PageOf(call)};
  CO_TRY_ASSIGN(auto listed, co_await work.approvals.List(call.who.user_id, filter));
  co_return ListResponse("approvals", listed);
}

Answer List(Work& work, Call& call) { return ListFor(work, call, TextParameter(call, "squad_id")); }

Answer ListOfSquad(Work& work, Call& call) {
  CO_TRY(co_await work.squads.Get(call.who.user_id, call.params.at("id")));
  co_return co_await ListFor(work, call, call.params.at("id"));
}

Answer Get(Work& work, Call& call) {
  CO_TRY_ASSIGN(auto row, co_await work.approvals.Get(call.who.user_id, call.params.at("id")));
  co_return http::Response::Json(200, Encode(row));
}

Answer Decide(Work& work, Call& call, bool approve) {
  CO_TRY_ASSIGN(auto row, co_await work.approvals.Decide(call.who.user_id, call.params.at("id"),
                                                         approve, call.who.user_id,
                                                         work::TextOf(call.body, "comment")));
  co_return http::Response::Json(200, Encode(row));
}
Answer Approve(Work& work, Call& call) { return Decide(work, call, true); }
Answer Reject(Work& work, Call& call) { return Decide(work, call, false); }

std::vector<Parameter> Filters() {
  return WithPage({{.name = "state",
                    .description = "only those",
                    .values = {"pending", "approved", "rejected", "expired"}},
                   {.name = "task_id", .description = "of this task"}});
}

}  // namespace

void AddApprovalRoutes(Frame& frame, Work& work) {
  frame.AddSchema("Approval", kApproval);
  frame.AddSchema("ApprovalList", ListSchema("approvals", "Approval"));
  frame.AddSchema("Decision", R"({"type":"object","properties":{
    "comment":{"type":"string","maxLength":10000}}})");
  std::vector<Parameter> filters = Filters();
  filters.push_back({.name = "squad_id", .description = "of this squad"});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/approvals",
             .tag = "approvals",
             .id = "listApprovals",
             .summary = "Questions to you, newest first",
             .access = Access::kViewer,
             .parameters = filters,
             .responses = {{200, "ApprovalList"}},
             .handler = Bind(work, List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/squads/{id}/approvals",
             .tag = "approvals",
             .id = "listSquadApprovals",
             .summary = "Questions of a squad, newest first",
             .access = Access::kViewer,
             .parameters = Filters(),
             .responses = {{200, "ApprovalList"}},
             .handler = Bind(work, ListOfSquad)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/approvals/{id}",
             .tag = "approvals",
             .id = "getApproval",
             .summary = "One question",
             .access = Access::kViewer,
             .responses = {{200, "Approval"}},
             .handler = Bind(work, Get)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/approvals/{id}/approve",
             .tag = "approvals",
             .id = "approve",
             .summary = "Yes: the work goes on",
             .request = "Decision",
             .body_optional = true,
             .responses = {{200, "Approval"}, {409, "Error"}},
             .handler = Bind(work, Approve)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/approvals/{id}/reject",
             .tag = "approvals",
             .id = "reject",
             .summary = "No: the work ends",
             .request = "Decision",
             .body_optional = true,
             .responses = {{200, "Approval"}, {409, "Error"}},
             .handler = Bind(work, Reject)});
}

}  // namespace caisson::api
