#include "work/pull_request_watch.h"

#include <map>

#include "base/log.h"
#include "git/repository.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using store::Select;
using store::TaskRow;
using store::Transaction;

constexpr int64_t kMostAtOnce = 50;
constexpr size_t kListed = 100;

// Nothing if it is not on the forge of the settings.
std::optional<forge::RepoName> NameOnForge(const Config& config, const TaskRow& task) {
  auto parsed = git::ParseRepository(task.repo_url, config.github_url);
  if (!parsed || !IsRepository(config, task.repo_url, parsed->full_name())) return std::nullopt;
  return forge::RepoName{parsed->owner, parsed->name};
}

}  // namespace

bool IsScarce(const forge::Budget& budget, Time now) {
  return budget.low() && (!budget.resets_at || *budget.resets_at > now);
}

std::string StepTo(const forge::PullRequest& now, std::string_view known) {
  if (now.merged) return known == "merged" ? "" : "closed";
  if (now.state == "closed") return known == "closed" ? "" : "closed";
  if (known == "closed") return "reopened";
  if (now.draft) return known == "draft" ? "" : "converted_to_draft";
  return known == "draft" ? "ready_for_review" : "";
}

PullRequestWatch::PullRequestWatch(asio::any_io_executor executor, Platform platform,
                                   forge::GitHub& github, PullRequests& pull_requests)
    : platform_(platform),
      github_(github),
      pull_requests_(pull_requests),
      tasks_(std::move(executor)) {}

void PullRequestWatch::Start() {
  if (platform_.config.pull_request_check_s > 0) tasks_.Spawn("pull requests", Watch());
}

Task<void> PullRequestWatch::Stop() { co_await tasks_.Stop(); }

Task<void> PullRequestWatch::Watch() {
  for (;;) {
    Status done = co_await Check();
    if (!done)
      LogWarn("GitHub could not be asked about pull requests", {{"why", done.error().message()}});
    co_await SleepFor(std::chrono::seconds(platform_.config.pull_request_check_s));
  }
}

Task<Result<std::vector<TaskRow>>> PullRequestWatch::NextTasks() {
  CO_TRY_ASSIGN(auto tasks, co_await platform_.store.Read([after = last_id_](Transaction& tx) {
    return tx.List(Select<TaskRow>()
                       .Eq(&TaskRow::status, "in_review")
                       .Greater(&TaskRow::pull_request_number, 0)
                       .NotEq(&TaskRow::pull_request_state, "merged")
                       .Greater(&TaskRow::id, after)
                       .Order(&TaskRow::id)
                       .Limit(kMostAtOnce));
  }));
  bool more = static_cast<int64_t>(tasks.size()) == kMostAtOnce;
  last_id_ = more ? tasks.back().id : "";
  co_return tasks;
}

Task<Status> PullRequestWatch::Check() {
  if (!github_.configured() || IsScarce(github_.budget(), Now())) co_return Status();
  CO_TRY_ASSIGN(auto tasks, co_await NextTasks());
  std::map<std::string, std::vector<TaskRow>> by_repository;
  for (TaskRow& task : tasks)
    if (auto repo = NameOnForge(platform_.config, task))
      by_repository[repo->full_name()].push_back(std::move(task));
  for (auto& [name, of_it] : by_repository) {
    CO_TRY_ASSIGN(forge::RepoName repo, forge::ParseRepoName(name));
    Status done = co_await CheckRepository(std::move(repo), std::move(of_it));
    // One that is gone, or hidden from the token, says nothing about the others.
    if (!done && done.error().code() != Code::kNotFound &&
        done.error().code() != Code::kPermissionDenied)
      co_return done;
    if (!done)
      LogInfo("pull requests of a repository were not checked",
              {{"repository", name}, {"why", done.error().message()}});
  }
  co_return Status();
}

Task<Status> PullRequestWatch::CheckRepository(forge::RepoName repo, std::vector<TaskRow> tasks) {
  std::map<int64_t, forge::PullRequest> open;
  if (tasks.size() > 1) {  // one question instead of one for each
    CO_TRY_ASSIGN(auto listed, co_await github_.ListPullRequests(repo, {.limit = kListed}));
    for (forge::PullRequest& one : listed) open[one.number] = std::move(one);
  }
  for (TaskRow& task : tasks) {
    auto found = open.find(task.pull_request_number);
    if (found != open.end()) {
      CO_TRY(co_await Tell(repo, std::move(task), found->second));
      continue;
    }
    auto one = co_await github_.GetPullRequest(repo, task.pull_request_number);
    // One that is gone says nothing about the others.
    if (!one && one.error().code() == Code::kNotFound) continue;
    CO_TRY(one);
    CO_TRY(co_await Tell(repo, std::move(task), std::move(*one)));
  }
  co_return Status();
}

Task<Status> PullRequestWatch::Tell(forge::RepoName repo, TaskRow task, forge::PullRequest now) {
  std::string action = StepTo(now, task.pull_request_state);
  if (action.empty()) co_return Status();
  forge::WebhookEvent event = EventAbout(repo, now, std::move(action), now.merged_by);
  CO_TRY_ASSIGN(Delivery delivery,
                co_await pull_requests_.Follow(std::move(event), task.pull_request_state));
  co_await DeleteMergedBranch(platform_.config, github_, std::move(repo), std::move(delivery));
  co_return Status();
}

Task<Result<TaskRow>> PullRequestWatch::Refresh(std::string owner_id, std::string task_id) {
  auto read = [owner_id, task_id](Transaction& tx) { return NeedTask(tx, owner_id, task_id); };
  CO_TRY_ASSIGN(TaskRow task, co_await platform_.store.Read(read));
  if (task.pull_request_number <= 0)
    co_return Fail(Code::kNotFound, "the task {} has no pull request", task.id);
  auto repo = NameOnForge(platform_.config, task);
  if (!repo)
    co_return Fail(Code::kFailedPrecondition, "the repository {} is not on {}", task.repo_url,
                   platform_.config.github_url);
  CO_TRY_ASSIGN(auto now, co_await github_.GetPullRequest(*repo, task.pull_request_number));
  CO_TRY(co_await Tell(std::move(*repo), std::move(task), std::move(now)));
  co_return co_await platform_.store.Read(read);
}

}  // namespace caisson::work
