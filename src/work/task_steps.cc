// The steps of a task. Each may be run again from its beginning.
#include <boost/json/serialize.hpp>

#include "base/log.h"
#include "work/approvals.h"
#include "work/costs.h"
#include "work/event.h"
#include "work/json_fields.h"
#include "work/start.h"
#include "work/step_tools.h"
#include "work/task_flow.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using flow::Outcome;
using flow::StepContext;
using store::ExecutionRow;
using store::TaskRow;
using store::Transaction;

constexpr std::chrono::hours kApprovalPatience{24 * 7};
constexpr std::chrono::seconds kShortestWait{1};

json::array ListOf(const std::vector<git::CommitInfo>& commits) {
  json::array list;
  for (const git::CommitInfo& commit : commits)
    list.push_back(json::object{{"sha", commit.sha}, {"message", commit.message}});
  return list;
}

// The run waits for its user: what has to be done only a person can decide.
Outcome AskAbout(const Error& error) {
  Outcome outcome = Outcome::Failed(error);
  outcome.error_class = flow::ErrorClass::kUserAction;
  return outcome;
}

}  // namespace

Task<Result<Outcome>> TaskFlow::Provision(StepContext, Scene scene) {
  CO_TRY_ASSIGN(std::string sandbox, co_await workshop_.Open(scene.job));
  Outcome outcome = Outcome::Done({{"sandbox_id", sandbox}});
  outcome.also =
      OnExecution(scene.execution.id, [sandbox](Transaction& tx, ExecutionRow& row) -> Status {
        row.sandbox_id = sandbox;
        TRY_ASSIGN(auto agent, tx.Get<store::AgentRow>(row.agent_id.value_or("")));
        if (!agent || agent->current_task_id != row.task_id) return {};
        agent->sandbox_id = sandbox;
        return tx.Update(*agent);
      });
  co_return outcome;
}

Task<Result<Outcome>> TaskFlow::Clone(StepContext, Scene scene) {
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await workshop_.Open(scene.job));
  CO_TRY_ASSIGN(auto cloned, co_await workshop_.Clone(scene.job, scene.task.base_branch));
  co_return Outcome::Done({{"path", cloned.path},
                           {"head_sha", cloned.head_sha},
                           {"base", cloned.branch},
                           {"fetched", !cloned.cloned},
                           {"sandbox_id", scene.job.sandbox_id}});
}

Task<Result<Outcome>> TaskFlow::Branch(StepContext context, Scene scene) {
  bool ours = !scene.task.git_branch.empty();
  std::string name = scene.job.push_prefix;
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await workshop_.Open(scene.job));
  std::string base = TextOf(ResultOf(context, "clone"), "base");
  CO_TRY_ASSIGN(auto made, co_await workshop_.Branch(scene.job, name, base));
  // A branch that was there before this task had one is somebody else's. Only the first attempt
  // can know: later ones find their own.
  if (!made.created && !ours && context.attempt == 1) {
    name += "-" + std::to_string(UnixSeconds(Now()));
    scene.job.push_prefix = name;
    CO_TRY_ASSIGN(made, co_await workshop_.Branch(scene.job, name, base));
  }
  Outcome outcome = Outcome::Done({{"branch", made.branch}, {"base_sha", made.base_sha}});
  outcome.also = OnExecution(scene.execution.id,
                             [this, branch = made.branch, sha = made.base_sha](
                                 Transaction& tx, ExecutionRow& row) -> Status {
                               row.git_branch = branch;
                               row.base_sha = sha;
                               TRY_ASSIGN(auto task, tx.Get<TaskRow>(row.task_id.value_or("")));
                               if (!task) return {};
                               task->git_branch = branch;
                               return SetTaskStatus(tx, platform_, *task, task->status);
                             });
  co_return outcome;
}

Task<Result<std::string>> TaskFlow::Return(StepContext context, Scene scene, bool work) {
  CO_TRY_ASSIGN(std::string sandbox, co_await workshop_.Open(scene.job));
  // The execution knows where its work is, also when that was moved meanwhile.
  std::string cloned = TextOf(ResultOf(context, "clone"), "sandbox_id");
  if (sandbox == scene.execution.sandbox_id || (!work && sandbox == cloned)) co_return sandbox;
  if (work)
    co_return Fail(Code::kDataLoss,
                   "the sandbox with the agent's work is gone; start the task again, or retry the "
                   "run at the step agent");
  scene.job.sandbox_id = sandbox;
  scene.job.untouched = true;
  std::string base = TextOf(ResultOf(context, "clone"), "base");
  CO_TRY(co_await workshop_.Clone(scene.job, base));
  CO_TRY(co_await workshop_.Branch(scene.job, TextOf(ResultOf(context, "branch"), "branch"), base));
  co_return sandbox;
}

Task<TaskChanges> TaskFlow::ChangesOf(StepContext context, Scene scene) {
  auto found = co_await workshop_.Changes(scene.job, TextOf(ResultOf(context, "clone"), "head_sha"),
                                          LitterOf(scene.agent.adapter));
  if (found) co_return Describe(platform_, std::move(*found), "stored");
  // The commit is what counts; that nobody can look at it here is no reason to lose it.
  LogWarn("the changes of a task were not kept",
          {{"task", scene.task.id}, {"error", found.error().message()}});
  co_return TaskChanges{};
}

Task<Result<Outcome>> TaskFlow::Commit(StepContext context, Scene scene) {
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await Return(context, scene, /*work=*/true));
  CommitRequest request{
      .message = TextOf(scene.options, "commit_message"),
      .author_name = TextOf(scene.config, "git_user_name"),
      .author_email = TextOf(scene.config, "git_user_email"),
      .trailers = {"Caisson-Task: " + scene.task.id, "Caisson-Execution: " + scene.execution.id}};
  if (request.message.empty()) {
    CO_TRY_ASSIGN(request.message, CommitMessageOf(platform_.config, scene.task, scene.agent));
  }
  if (request.author_name.empty()) request.author_name = platform_.config.git_user_name;
  if (request.author_email.empty()) request.author_email = platform_.config.git_user_email;
  request.leave_out = LitterOf(scene.agent.adapter);
  CO_TRY(co_await workshop_.Commit(scene.job, request));
  // The agent's own commits count as much as ours.
  std::string base = TextOf(ResultOf(context, "branch"), "base_sha");
  CO_TRY_ASSIGN(auto commits, co_await workshop_.Commits(scene.job, base));
  json::array list = ListOf(commits);
  std::string head = commits.empty() ? base : commits.front().sha;
  TaskChanges changes = co_await ChangesOf(context, scene);
  Outcome outcome = Outcome::Done({{"head_sha", head}, {"commits", list}});
  outcome.also = OnExecution(scene.execution.id, [=](Transaction& tx, ExecutionRow& row) -> Status {
    if (!changes.files.empty() && row.task_id) TRY(KeepChanges(tx, *row.task_id, row.id, changes));
    row.head_sha = head;
    row.commits = json::serialize(list);
    if (list.empty())
      row.summary =
          "The agent changed nothing, so there is no pull "
          "request. " +
          row.summary;
    return {};
  });
  co_return outcome;
}

Task<Result<Outcome>> TaskFlow::AskFor(StepContext context, Scene scene,
                                       store::ApprovalRow approval) {
  // The work has to be there when somebody agrees, so its sandbox is left before its end.
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await Return(context, scene, /*work=*/true));
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await LeaveInTime(scene));
  CO_TRY_ASSIGN(std::chrono::milliseconds left, co_await workshop_.TimeLeft(scene.job));
  approval.details =
      json::serialize(json::object{{"branch", TextOf(ResultOf(context, "branch"), "branch")},
                                   {"summary", TextOf(ResultOf(context, "agent"), "summary")},
                                   {"commits", ArrayIn(ResultOf(context, "commit"), "commits")}});
  Outcome wait =
      Outcome::Wait(ApprovalKey(approval.id),
                    std::clamp<std::chrono::milliseconds>(left, kShortestWait, kApprovalPatience));
  wait.also = [this, approval](Transaction& tx) {
    return RequestApproval(tx, platform_, approval);
  };
  co_return wait;
}

Task<Result<std::optional<Outcome>>> TaskFlow::AwaitApproval(StepContext context, Scene scene) {
  if (!TrueIn(scene.options, "approve_push") && !TrueIn(scene.config, "approve_push"))
    co_return std::nullopt;
  store::ApprovalRow approval{.id = "push-" + scene.execution.id,
                              .owner_id = scene.task.owner_id,
                              .squad_id = scene.task.squad_id,
                              .task_id = scene.task.id,
                              .run_id = context.run_id,
                              .kind = "push",
                              .title = "Push the changes for: " + scene.task.title,
                              .created_at = Now()};
  CO_TRY_ASSIGN(auto asked, co_await platform_.store.Read([id = approval.id](Transaction& tx) {
    return tx.Get<store::ApprovalRow>(id);
  }));
  if (!asked) co_return co_await AskFor(context, scene, std::move(approval));
  if (asked->state == "approved") co_return std::nullopt;
  if (asked->state != "pending")
    co_return Outcome::Failed(
        Error(Code::kFailedPrecondition,
              fmt::format("the push was {}: {}", asked->state, asked->comment)));
  if (Now() - asked->created_at < kApprovalPatience)
    co_return co_await AskFor(context, scene, std::move(*asked));
  Outcome expired =
      Outcome::Failed(Error(Code::kFailedPrecondition, "nobody agreed to the push in time"));
  expired.also = [id = approval.id](Transaction& tx) -> Status {
    TRY(tx.Set(store::Select<store::ApprovalRow>()
                   .Eq(&store::ApprovalRow::id, id)
                   .Eq(&store::ApprovalRow::state, "pending"),
               {store::Assign(&store::ApprovalRow::state, "expired")}));
    return {};
  };
  co_return expired;
}

Task<Result<Outcome>> TaskFlow::Push(StepContext context, Scene scene) {
  if (NothingChanged(context) || scene.job.repository.is_scratch())
    co_return Outcome::Done({{"skipped", true}});
  CO_TRY_ASSIGN(auto outcome, co_await AwaitApproval(context, scene));
  if (outcome) co_return std::move(*outcome);
  CO_TRY_ASSIGN(scene.job.sandbox_id, co_await Return(context, scene, /*work=*/true));
  std::string branch = TextOf(ResultOf(context, "branch"), "branch");
  auto sha = co_await workshop_.Push(scene.job, branch, /*rebase=*/true);
  if (!sha && sha.error().code() == Code::kAborted) co_return AskAbout(sha.error());
  CO_TRY(sha);
  Outcome done = Outcome::Done({{"sha", *sha}});
  const json::object& committed = ResultOf(context, "commit");
  if (*sha == TextOf(committed, "head_sha")) co_return done;
  // It lies on top of somebody else's commits now, and has other names there.
  std::string base = TextOf(ResultOf(context, "branch"), "base_sha");
  CO_TRY_ASSIGN(auto commits, co_await workshop_.Commits(scene.job, base));
  commits.resize(std::min(commits.size(), ArrayIn(committed, "commits").size()));
  done.also = OnExecution(scene.execution.id,
                          [head = *sha, list = ListOf(commits)](Transaction&, ExecutionRow& row) {
                            row.head_sha = head;
                            row.commits = json::serialize(list);
                            return Status();
                          });
  co_return done;
}

Task<Result<Outcome>> TaskFlow::Finish(StepContext, Scene scene) {
  CO_TRY_ASSIGN(Used used, co_await workshop_.Measure(scene.job));
  // Written down before the sandbox goes: afterwards nobody could tell what it used.
  if (!used.sandbox_id.empty())
    CO_TRY(co_await platform_.store.Write([this, cost = CostOf(scene, used)](Transaction& tx) {
      return RecordCost(tx, platform_, cost);
    }));
  CO_TRY(co_await workshop_.Release(scene.job, platform_.config.task_keep_sandbox));
  co_return Outcome::Done({{"sandbox_ms", used.running_ms}, {"cpu_ms", used.cpu_ms}});
}

}  // namespace caisson::work
