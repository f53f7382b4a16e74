#include "work/changes.h"

#include <boost/json.hpp>

#include "store/flow_rows.h"
#include "work/adapter.h"
#include "work/json_fields.h"
#include "work/start.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::ExecutionRow;
using store::Select;
using store::StepRow;
using store::TaskChangesRow;
using store::TaskRow;
using store::Transaction;

// What the run of an execution wrote down when it had cloned.
Result<json::object> CloneOf(Transaction& tx, const ExecutionRow& execution) {
  TRY_ASSIGN(
      auto clone,
      tx.First(
          Select<StepRow>().Eq(&StepRow::run_id, execution.run_id).Eq(&StepRow::name, "clone")));
  return clone ? ParseObject(clone->result) : json::object();
}

// Of the commits that an execution made.
std::string MessageOf(const ExecutionRow& execution, const std::string& sha) {
  boost::system::error_code ec;
  json::value commits = json::parse(execution.commits, ec);
  if (ec || !commits.is_array()) return "";
  for (const json::value& commit : commits.get_array())
    if (commit.is_object() && TextOf(commit.get_object(), "sha") == sha)
      return TextOf(commit.get_object(), "message");
  return "";
}

TaskChanges Kept(const TaskChangesRow& row) {
  TaskChanges changes{.source = "stored",
                      .base_sha = row.base_sha,
                      .head_sha = row.head_sha,
                      .branch = row.branch,
                      .patch = row.patch,
                      .truncated = row.truncated};
  boost::system::error_code ec;
  if (json::value files = json::parse(row.files, ec); !ec && files.is_array())
    changes.files = std::move(files.as_array());
  return changes;
}

}  // namespace

TaskChanges Describe(Platform& platform, git::ChangesResult found, std::string source) {
  const events::Redactor& redactor = platform.log.redactor();
  TaskChanges changes{.source = std::move(source),
                      .base_sha = std::move(found.base_sha),
                      .head_sha = std::move(found.head_sha),
                      .branch = std::move(found.branch),
                      .patch = redactor.Redact(found.patch),
                      .truncated = found.truncated};
  for (const git::DiffFile& file : found.files)
    changes.files.push_back(json::object{{"path", redactor.Redact(file.path)},
                                         {"old_path", redactor.Redact(file.old_path)},
                                         {"status", file.change},
                                         {"additions", file.added},
                                         {"deletions", file.removed},
                                         {"binary", file.binary}});
  return changes;
}

Status KeepChanges(Transaction& tx, const std::string& task_id, const std::string& execution_id,
                   const TaskChanges& changes) {
  TaskChangesRow row{.task_id = task_id,
                     .execution_id = execution_id,
                     .base_sha = changes.base_sha,
                     .head_sha = changes.head_sha,
                     .branch = changes.branch,
                     .files = json::serialize(changes.files),
                     .patch = changes.patch,
                     .truncated = changes.truncated,
                     .created_at = Now()};
  TRY(tx.Delete(Select<TaskChangesRow>().Eq(&TaskChangesRow::task_id, task_id)));
  return tx.Insert(row);
}

std::vector<std::string> LitterOf(const std::string& adapter) {
  std::vector<std::string> patterns;
  if (const Adapter* known = FindAdapter(adapter))
    for (const std::string& one : known->Litter()) patterns.push_back(":(exclude,glob)**/" + one);
  return patterns;
}

Result<Changes::Place> Changes::Find(Transaction& tx, const std::string& owner_id,
                                     const std::string& task_id) const {
  Place place;
  TRY_ASSIGN(place.task, NeedTask(tx, owner_id, task_id));
  TRY_ASSIGN(place.execution, tx.First(Select<ExecutionRow>()
                                           .Eq(&ExecutionRow::task_id, task_id)
                                           .Order(&ExecutionRow::created_at, true)));
  if (!place.execution || place.execution->run_id.empty()) return place;
  TRY_ASSIGN(json::object clone, CloneOf(tx, *place.execution));
  // The tip of the base, from which a branch that is older than this attempt has left long before.
  place.base = TextOf(clone, "head_sha");
  if (place.base.empty()) place.base = place.execution->base_sha;
  place.base_branch = TextOf(clone, "base");
  TRY_ASSIGN(auto agent, tx.Get<store::AgentRow>(place.execution->agent_id.value_or("")));
  if (agent) place.leave_out = LitterOf(agent->adapter);
  if (place.task.squad_id && place.task.repo_url.empty()) {
    TRY_ASSIGN(auto squad, tx.Get<store::SquadRow>(*place.task.squad_id));
    if (squad) place.task.repo_url = squad->repo_url;
  }
  return place;
}

Task<Result<std::optional<TaskChanges>>> Changes::Look(Place place, bool since_commit) {
  if (!place.execution || place.base.empty()) co_return std::nullopt;
  CO_TRY_ASSIGN(auto sandbox, co_await sandboxes_.FindByHolder("task", place.execution->id));
  if (!sandbox || sandbox->status != "running") co_return std::nullopt;
  CO_TRY_ASSIGN(git::Repository repository, RepositoryOf(platform_.config, place.task));
  std::function<Task<Result<git::ChangesResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Changes(since_commit ? "" : place.base, place.leave_out,
                       platform_.config.task_changes_max_bytes);
  };
  auto found =
      co_await checkouts_.Look(place.task.owner_id, sandbox->id,
                               checkouts_.PathOf(sandbox->id, repository), std::move(work));
  if (found) co_return Describe(platform_, std::move(*found), "sandbox");
  // The agent has put its repository away, or the sandbox ended while it was asked.
  if (found.error().code() == Code::kNotFound || found.error().code() == Code::kFailedPrecondition)
    co_return std::nullopt;
  CO_TRY_ASSIGN(auto now, co_await sandboxes_.FindByHolder("task", place.execution->id));
  if (!now || now->id != sandbox->id || now->status != "running") co_return std::nullopt;
  co_return tl::unexpected(found.error());
}

Task<Result<TaskChanges>> Changes::Of(std::string owner_id, std::string task_id,
                                      bool since_commit) {
  CO_TRY_ASSIGN(Place place, co_await platform_.store.Read([=, this](Transaction& tx) {
    return Find(tx, owner_id, task_id);
  }));
  CO_TRY_ASSIGN(auto seen, co_await Look(std::move(place), since_commit));
  if (seen) co_return std::move(*seen);
  // Only now: a sandbox ends after its changes are kept.
  CO_TRY_ASSIGN(auto kept, co_await platform_.store.Read(
                               [=](Transaction& tx) { return tx.Get<TaskChangesRow>(task_id); }));
  co_return kept ? Kept(*kept) : TaskChanges();
}

Task<Result<GitContext>> Changes::ContextOf(std::string owner_id, std::string task_id) {
  CO_TRY_ASSIGN(Place place, co_await platform_.store.Read([=, this](Transaction& tx) {
    return Find(tx, owner_id, task_id);
  }));
  GitContext context{
      .repo_url = place.task.repo_url,
      .base_branch = place.base_branch.empty() ? place.task.base_branch : place.base_branch,
      .current_branch = place.task.git_branch};
  if (!place.execution) co_return context;
  const ExecutionRow execution = *place.execution;
  context.last_commit_sha = execution.head_sha.empty() ? execution.base_sha : execution.head_sha;
  // The step that writes down the commit leaves nothing that is not committed.
  if (!execution.head_sha.empty()) context.uncommitted_changes = 0;
  CO_TRY_ASSIGN(auto seen, co_await Look(std::move(place), /*since_commit=*/true));
  if (seen) {
    context.current_branch = seen->branch;
    context.last_commit_sha = seen->head_sha;
    context.uncommitted_changes = static_cast<int64_t>(seen->files.size());
  }
  context.last_commit_message = MessageOf(execution, context.last_commit_sha);
  co_return context;
}

}  // namespace caisson::work
