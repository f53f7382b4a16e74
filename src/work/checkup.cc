#include "work/checkup.h"

#include <algorithm>

#include "account/key_ring.h"
#include "base/id.h"
#include "git/repository.h"
#include "store/work_rows.h"
#include "work/pull_requests.h"

namespace caisson::work {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using store::RunRow;
using store::Select;
using store::TaskRow;
using store::Transaction;
using Steady = std::chrono::steady_clock;

constexpr std::string_view kDefinition = "checkup";
constexpr int64_t kPriority = 1000;  // before all tasks: what is asked is whether it can run at all
constexpr milliseconds kRunDeadline{10'000};
constexpr milliseconds kFirstLook{5}, kLongestPause{200};
constexpr size_t kMaxRepositories = 3;
constexpr int64_t kMaxTasks = 50;  // that are looked at for repositories

Task<flow::Outcome> DoNothing(flow::StepContext) { co_return flow::Outcome::Done(); }

// Also those that a killed server left.
Status DeleteEnded(Transaction& tx) {
  for (const char* state : {"succeeded", "failed", "canceled", "dead"})
    TRY(tx.Delete(Select<RunRow>()
                      .Eq(&RunRow::owner_id, account::kAdminId)
                      .Eq(&RunRow::definition, kDefinition)
                      .Eq(&RunRow::state, state)));
  return {};
}

}  // namespace

Checkup::Checkup(asio::any_io_executor executor, Platform platform, forge::GitHub& github)
    : platform_(platform),
      github_(github),
      github_answer_(executor, "github", [this] { return AskGithub(); }),
      run_answer_(executor, "runs", [this] { return TryRun(); }) {}

flow::Definition Checkup::Define() {
  return {.name = std::string(kDefinition), .steps = {{.name = "nothing", .run = DoNothing}}};
}

Task<void> Checkup::Stop() {
  co_await github_answer_.Stop();
  co_await run_answer_.Stop();
}

Task<Result<json::object>> Checkup::TryRun() {
  int64_t workers = platform_.config.flow_workers;
  auto running = static_cast<int64_t>(platform_.flow.numbers().running);
  if (workers > 0 && running >= workers)
    co_return json::object{{"busy", true}, {"running", running}};
  auto begun = Steady::now();
  std::string id = RandomUuid();
  CO_TRY(co_await platform_.store.Write([this, id](Transaction& tx) -> Status {
    TRY(DeleteEnded(tx));
    return platform_.flow.StartRun(tx, {.id = id,
                                        .definition = std::string(kDefinition),
                                        .owner_id = std::string(account::kAdminId),
                                        .priority = kPriority});
  }));
  platform_.flow.Wake();
  for (milliseconds pause = kFirstLook;; pause = std::min(pause * 2, kLongestPause)) {
    co_await SleepFor(pause);
    CO_TRY_ASSIGN(auto run, co_await platform_.store.Read(
                                [id](Transaction& tx) { return tx.Get<RunRow>(id); }));
    // Another server may have cleaned up after it.
    if (!run || run->state == "succeeded") break;
    if (Steady::now() - begun > kRunDeadline)
      co_return Fail(Code::kDeadlineExceeded, "A run for trying is still {} after {} ms.",
                     run->state, kRunDeadline.count());
  }
  auto took = std::chrono::duration_cast<milliseconds>(Steady::now() - begun).count();
  CO_TRY(co_await platform_.store.Write(DeleteEnded));
  co_return json::object{{"finished_ms", took}, {"running", running}};
}

Task<Result<std::vector<forge::RepoName>>> Checkup::LatestRepositories() {
  CO_TRY_ASSIGN(auto tasks, co_await platform_.store.Read([](Transaction& tx) {
    return tx.List(Select<TaskRow>().Order(&TaskRow::updated_at, true).Limit(kMaxTasks));
  }));
  std::vector<forge::RepoName> repositories;
  for (const TaskRow& task : tasks) {
    auto parsed = git::ParseRepository(task.repo_url, platform_.config.github_url);
    if (!parsed || !IsRepository(platform_.config, task.repo_url, parsed->full_name())) continue;
    bool known = std::ranges::any_of(repositories, [&](const forge::RepoName& other) {
      return other.full_name() == parsed->full_name();
    });
    if (!known) repositories.push_back({parsed->owner, parsed->name});
    if (repositories.size() == kMaxRepositories) break;
  }
  co_return repositories;
}

Task<Result<json::object>> Checkup::AskGithub() {
  if (!github_.configured()) co_return json::object{{"configured", false}};
  CO_TRY_ASSIGN(forge::Budget budget, co_await github_.GetBudget());
  CO_TRY_ASSIGN(auto repositories, co_await LatestRepositories());
  int64_t insufficient = 0;
  for (const forge::RepoName& repo : repositories) {
    auto rights = co_await github_.CheckRights(repo);
    if (!rights && rights.error().code() != Code::kNotFound)
      co_return tl::unexpected(rights.error());
    insufficient += !rights || !rights->sufficient();
  }
  if (insufficient > 0)
    co_return Fail(Code::kPermissionDenied,
                   "The credential may not push or not open pull requests in {} of the {} "
                   "repositories of the latest tasks. GET /api/v1/github/repos/OWNER/NAME/rights "
                   "tells of each.",
                   insufficient, repositories.size());
  co_return json::object{
      {"configured", true}, {"remaining", budget.remaining}, {"repositories", repositories.size()}};
}

}  // namespace caisson::work
