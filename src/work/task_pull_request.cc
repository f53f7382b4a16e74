// The pull request of a task: at its end, or as a draft at the agent's first commit.
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/log.h"
#include "work/event.h"
#include "work/pull_request_text.h"
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

// Whether a pull request is on its way to be merged.
bool IsOpen(const TaskRow& task) {
  return task.pull_request_number != 0 && task.pull_request_state != "closed" &&
         task.pull_request_state != "merged";
}

}  // namespace

Task<Result<sdk::CommandResult>> TaskFlow::RunAgent(StepContext context, Scene scene,
                                                    sdk::Command command) {
  Job job = scene.job;
  bool approved = TrueIn(scene.options, "approve_push") || TrueIn(scene.config, "approve_push");
  // What a person has to agree to is not pushed before.
  if (platform_.config.pull_request != "first_commit" || approved || IsOpen(scene.task) ||
      job.repository.is_scratch())
    co_return co_await workshop_.RunAgent(std::move(job), std::move(command));
  using namespace asio::experimental::awaitable_operators;
  auto ended = co_await (workshop_.RunAgent(std::move(job), std::move(command)) ||
                         WatchForCommit(std::move(context), std::move(scene)));
  if (ended.index() == 0) co_return std::get<0>(std::move(ended));
  co_return Fail(Code::kCanceled, "the agent's step was stopped");
}

// Ends only when it is stopped: the agent's end is what counts.
Task<void> TaskFlow::WatchForCommit(StepContext context, Scene scene) {
  try {
    auto opened = co_await OpenDraft(std::move(context), std::move(scene));
    if (!opened)
      LogWarn("no pull request at the first commit; it is tried again at the end",
              {{"error", opened.error().message()}});
    asio::steady_timer never(co_await asio::this_coro::executor,
                             asio::steady_timer::time_point::max());
    co_await never.async_wait(kAwait);
  } catch (const boost::system::system_error& e) {
    if (e.code() != asio::error::operation_aborted)
      LogError("watching for the first commit failed", {{"error", e.what()}});
  }
}

Task<Result<int64_t>> TaskFlow::OpenDraft(StepContext context, Scene scene) {
  const json::object& branch = ResultOf(context, "branch");
  std::string base = TextOf(branch, "base_sha");
  CO_TRY(co_await workshop_.AwaitCommit(scene.job, base));
  CO_TRY_ASSIGN(auto commits, co_await workshop_.Commits(scene.job, base));
  std::vector<std::string> messages;
  for (const git::CommitInfo& commit : commits) messages.push_back(commit.message);
  forge::NewPullRequest request = RequestFor(context, scene, std::move(messages));
  request.draft = true;
  CO_TRY(co_await workshop_.Push(scene.job, request.head, /*rebase=*/false));
  CO_TRY_ASSIGN(auto made, co_await workshop_.OpenPullRequest(scene.job, request));
  const forge::PullRequest& opened = made.pull_request;
  CO_TRY(co_await platform_.store.Write(
      OnExecution(scene.execution.id, [this, opened](Transaction& tx, ExecutionRow& row) {
        return SetPullRequest(tx, row, opened);
      })));
  co_return opened.number;
}

forge::NewPullRequest TaskFlow::RequestFor(const StepContext& context, const Scene& scene,
                                           std::vector<std::string> commits) const {
  PullRequestText text{.title = scene.task.title,
                       .description = scene.task.description,
                       .summary = TextOf(ResultOf(context, "agent"), "summary"),
                       .commits = std::move(commits),
                       .agent = scene.agent.name,
                       .task_id = scene.task.id,
                       .task_number = scene.task.number,
                       .at = Now()};
  const json::value* draft = scene.options.if_contains("draft");
  forge::NewPullRequest request{
      .title = TextOf(scene.options, "pr_title"),
      .body = TextOf(scene.options, "pr_body"),
      .head = TextOf(ResultOf(context, "branch"), "branch"),
      .base = TextOf(ResultOf(context, "clone"), "base"),
      .draft = draft ? draft->as_bool() : platform_.config.pull_request_draft,
      .labels = TextsOf(scene.options, "labels"),
      .reviewers = TextsOf(scene.options, "reviewers")};
  if (request.title.empty()) request.title = PullRequestTitle(text);
  if (request.body.empty()) request.body = PullRequestBody(text);
  return request;
}

Status TaskFlow::SetPullRequest(Transaction& tx, ExecutionRow& execution,
                                const forge::PullRequest& opened) {
  execution.pull_request_url = opened.url;
  TRY_ASSIGN(auto task, tx.Get<TaskRow>(execution.task_id.value_or("")));
  if (!task) return {};
  // The same one again, after feedback or at the end of a draft: told when it was opened.
  bool known = task->pull_request_number == opened.number;
  task->pull_request_number = opened.number;
  task->pull_request_url = opened.url;
  task->pull_request_state = opened.draft ? "draft" : "open";
  TRY(SetTaskStatus(tx, platform_, *task, task->status));
  if (known) return {};
  TRY(platform_.log.Emit(tx, About(execution, "pr_created",
                                   {{"pr_number", opened.number},
                                    {"pr_url", opened.url},
                                    {"draft", opened.draft},
                                    {"identity", platform_.config.pull_request_identity},
                                    {"author", opened.author}})));
  return {};
}

Task<Result<Outcome>> TaskFlow::PullRequest(StepContext context, Scene scene) {
  const std::string& when = platform_.config.pull_request;
  if (NothingChanged(context) || when == "never" || scene.job.repository.is_scratch())
    co_return Outcome::Done({{"skipped", true}});
  std::vector<std::string> commits;
  for (const json::value& commit : ArrayIn(ResultOf(context, "commit"), "commits"))
    commits.push_back(TextOf(commit.as_object(), "message"));
  forge::NewPullRequest request = RequestFor(context, scene, std::move(commits));
  CO_TRY_ASSIGN(auto made, co_await workshop_.OpenPullRequest(scene.job, request));
  forge::PullRequest opened = made.pull_request;
  // A draft of the first commit knew neither the other commits nor what the agent says of them.
  if (when == "first_commit" && !made.created && opened.draft) {
    CO_TRY_ASSIGN(opened,
                  co_await workshop_.CompletePullRequest(scene.job, opened.number, request));
  }
  Outcome outcome = Outcome::Done({{"number", opened.number},
                                   {"url", opened.url},
                                   {"identity", platform_.config.pull_request_identity},
                                   {"author", opened.author}});
  outcome.also =
      OnExecution(scene.execution.id, [this, opened](Transaction& tx, ExecutionRow& row) {
        return SetPullRequest(tx, row, opened);
      });
  co_return outcome;
}

}  // namespace caisson::work
