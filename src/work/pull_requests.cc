#include "work/pull_requests.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "git/repository.h"
#include "work/event.h"
#include "work/json_fields.h"
#include "work/paging.h"
#include "work/start.h"
#include "work/tasks.h"

namespace caisson::work {
namespace {

using forge::WebhookEvent;
using store::Select;
using store::SessionRow;
using store::TaskRow;
using store::Transaction;
using store::WorkSandboxRow;

constexpr size_t kMaxFeedback = 20'000;
constexpr size_t kMaxWord = 200;
constexpr int64_t kForgetAtOnce = 100;
constexpr int kRememberedPerMinute = 60;
const std::vector<std::string> kNotTaken = {"refused", "failed"};

// What an event means, whomever it is about.
struct Meaning {
  std::string type;    // of the event we send; "" = none
  std::string state;   // the pull request's; "" = as it was
  std::string column;  // the task's; "" = as it was
  json::object data;   // of the event we send
};

std::string OpenState(const WebhookEvent& event) { return event.draft ? "draft" : "open"; }

Meaning OfReview(const WebhookEvent& event) {
  json::object data{{"reviewer", event.actor}, {"review_state", event.review_state}};
  if (event.action == "dismissed") return {.state = OpenState(event)};
  if (event.action != "submitted") return {};
  if (event.review_state == "approved") return {"pr_approved", "approved", "", std::move(data)};
  if (event.review_state == "changes_requested")
    return {"pr_changes_requested", OpenState(event), "", std::move(data)};
  return {};
}

Meaning OfPullRequest(const WebhookEvent& event) {
  const std::string& action = event.action;
  if (action == "closed" && event.merged)
    return {"pr_merged",
            "merged",
            "done",
            {{"merged_by", event.actor}, {"merge_commit_sha", event.merge_sha}}};
  // Not "pending", where an agent that looks for work would do again what was just refused.
  if (action == "closed") return {"pr_closed", "closed", "failed", {{"closed_by", event.actor}}};
  if (action == "reopened")
    return {"pr_reopened", OpenState(event), "in_review", {{"reopened_by", event.actor}}};
  if (action == "opened" || action == "ready_for_review" || action == "converted_to_draft")
    return {.state = OpenState(event)};
  return {};
}

Meaning Of(const WebhookEvent& event) {
  Meaning meaning;
  if (event.event == "pull_request") meaning = OfPullRequest(event);
  if (event.event == "pull_request_review") meaning = OfReview(event);
  meaning.data["pr_number"] = event.number;
  meaning.data["pr_url"] = event.url;
  return meaning;
}

// Merged, closed and reopened are told once, however often and by whomever we hear of them. What is
// merged stays so, whatever comes late.
bool IsKnown(const std::string& state, const Meaning& meaning) {
  bool once = meaning.type.empty() || meaning.type == "pr_merged" || meaning.type == "pr_closed" ||
              meaning.type == "pr_reopened";
  return once && (state == meaning.state || state == "merged");
}

// The column a task goes to. What a person has put elsewhere meanwhile stays there.
std::string ColumnFor(const TaskRow& task, const Meaning& meaning) {
  if (meaning.column.empty() || task.status == "canceled") return task.status;
  if (meaning.column == "failed" && task.status != "in_review") return task.status;
  if (meaning.column == "in_review" && task.status == "in_progress") return task.status;
  return meaning.column;
}

// The sandbox a task is or was worked on in, "" if there was none.
Result<std::string> SandboxOf(Transaction& tx, const std::string& task_id) {
  TRY_ASSIGN(auto row, tx.First(Select<WorkSandboxRow>()
                                    .Eq(&WorkSandboxRow::task_id, task_id)
                                    .Order(&WorkSandboxRow::created_at, /*descending=*/true)));
  return row ? row->id : "";
}

Status Apply(Transaction& tx, Platform& platform, TaskRow task, const WebhookEvent& event,
             const Meaning& meaning) {
  std::string column = ColumnFor(task, meaning);
  // What is merged needs no more work.
  if (column == "done" && task.status == "in_progress") {
    TRY(CancelWork(tx, platform, task, "the pull request of the task was merged"));
    TRY_ASSIGN(task, NeedTask(tx, task.owner_id, task.id));
  }
  if (!meaning.state.empty()) task.pull_request_state = meaning.state;
  if (meaning.type == "pr_changes_requested")
    task.feedback = Shorten(platform.log.redactor().Redact(event.review_body), kMaxFeedback);
  TRY(SetTaskStatus(tx, platform, task, column));
  if (meaning.type.empty()) return {};
  store::EventRow about = About(task, meaning.type, meaning.data);
  TRY_ASSIGN(about.sandbox_id, SandboxOf(tx, task.id));
  TRY(platform.log.Emit(tx, std::move(about)));
  return {};
}

// A sandbox that a user works in without a task has no column, but listeners.
Status Tell(Transaction& tx, Platform& platform, const WorkSandboxRow& sandbox,
            const Meaning& meaning) {
  if (meaning.type.empty()) return {};
  store::EventRow about;
  about.at = Now();
  about.type = meaning.type;
  about.owner_id = sandbox.owner_id;
  about.agent_id = sandbox.agent_id.value_or("");
  about.sandbox_id = sandbox.id;
  if (sandbox.holder_kind == "session") about.session_id = sandbox.holder_id;
  about.data = json::serialize(meaning.data);
  TRY(platform.log.Emit(tx, std::move(about)));
  return {};
}

// The oldest of those that nobody needs to know again.
Status ForgetSome(Transaction& tx, int64_t keep) {
  using store::WebhookRow;
  TRY_ASSIGN(auto old, tx.List(Select<WebhookRow>()
                                   .In(&WebhookRow::outcome, kNotTaken)
                                   .Order(&WebhookRow::at, /*descending=*/true)
                                   .Limit(kForgetAtOnce)
                                   .Offset(keep)));
  std::vector<std::string> ids;
  for (const WebhookRow& row : old) ids.push_back(row.id);
  TRY(tx.Delete(Select<WebhookRow>().In(&WebhookRow::id, ids)));
  return {};
}

}  // namespace

WebhookEvent EventAbout(const forge::RepoName& repo, const forge::PullRequest& now,
                        std::string action, std::string actor) {
  return {.event = "pull_request",
          .action = std::move(action),
          .repo = repo.full_name(),
          .number = now.number,
          .url = now.url,
          .head = now.head,
          .base = now.base,
          .title = now.title,
          .merged = now.merged,
          .draft = now.draft,
          .merge_sha = now.merge_sha,
          .actor = std::move(actor)};
}

Task<void> DeleteMergedBranch(const Config& config, forge::GitHub& github, forge::RepoName repo,
                              Delivery delivery) {
  if (!config.delete_merged_branch || delivery.merged_branch.empty()) co_return;
  Status done = co_await github.DeleteBranch(repo, delivery.merged_branch);
  if (!done)
    LogWarn("a merged branch was not deleted", {{"repository", repo.full_name()},
                                                {"branch", delivery.merged_branch},
                                                {"why", done.error().message()}});
}

void AddRemarks(WebhookEvent& event, const std::vector<forge::Comment>& comments) {
  for (const forge::Comment& one : comments) {
    if (one.review_id != event.review_id || event.review_id == 0) continue;
    if (!event.review_body.empty()) event.review_body += "\n\n";
    event.review_body += one.line > 0 ? fmt::format("{}:{}: {}", one.path, one.line, one.body)
                                      : fmt::format("{}: {}", one.path, one.body);
  }
}

bool IsRepository(const Config& config, std::string_view repo_url, std::string_view full_name) {
  auto repository = git::ParseRepository(repo_url, config.github_url);
  std::string_view base = config.github_url;
  while (base.ends_with('/')) base.remove_suffix(1);
  // GitHub does not tell "Widget" from "widget".
  return repository && EqualsIgnoreCase(repository->base_url, base) &&
         EqualsIgnoreCase(repository->full_name(), full_name);
}

// Nobody remembers what listeners of a sandbox without a task were told, so they hear of what this
// server did from GitHub only.
Result<Delivery> PullRequests::Process(Transaction& tx, const WebhookEvent& event, bool ours,
                                       const std::optional<std::string>& from) {
  Meaning meaning = Of(event);
  if (meaning.state.empty())
    return Delivery{.outcome = "ignored", .note = "Nothing follows from this event."};
  Delivery delivery{.outcome = "ignored", .note = "No task or session has this pull request."};
  // The number alone says nothing: every repository counts from one.
  TRY_ASSIGN(auto tasks,
             tx.List(Select<TaskRow>().Eq(&TaskRow::pull_request_number, event.number)));
  for (TaskRow& task : tasks) {
    if (!IsRepository(platform_.config, task.repo_url, event.repo)) continue;
    if (event.merged && task.git_branch == event.head && event.head != event.base)
      delivery.merged_branch = event.head;
    delivery.task_ids.push_back(task.id);
    if (IsKnown(task.pull_request_state, meaning) || (from && task.pull_request_state != *from))
      continue;
    TRY(Apply(tx, platform_, std::move(task), event, meaning));
  }
  TRY_ASSIGN(auto sandboxes, tx.List(Select<WorkSandboxRow>()
                                         .Eq(&WorkSandboxRow::pr_number, event.number)
                                         .IsNull(&WorkSandboxRow::task_id)));
  size_t told = 0;
  for (const WorkSandboxRow& sandbox : sandboxes) {
    if (ours || !IsRepository(platform_.config, sandbox.repo_url, event.repo)) continue;
    TRY(Tell(tx, platform_, sandbox, meaning));
    ++told;
  }
  TRY_ASSIGN(auto sessions,
             tx.List(Select<SessionRow>().Eq(&SessionRow::pull_request_number, event.number)));
  std::erase_if(sessions, [&](const SessionRow& session) {
    return !IsRepository(platform_.config, session.repo_url, event.repo);
  });
  for (SessionRow& session : sessions) {
    if (IsKnown(session.pull_request_state, meaning) ||
        (from && session.pull_request_state != *from))
      continue;
    session.pull_request_state = meaning.state;
    TRY(tx.Update(session));
    if (tell_session_) TRY(tell_session_(tx, session));
  }
  if (delivery.task_ids.empty() && told == 0 && sessions.empty()) return delivery;
  delivery.outcome = "processed";
  delivery.note = fmt::format("{} tasks, {} sessions and {} sandboxes have this pull request.",
                              delivery.task_ids.size(), sessions.size(), told);
  return delivery;
}

Task<Result<Delivery>> PullRequests::Receive(std::string id, WebhookEvent event) {
  auto done =
      co_await platform_.store.Write([this, id, event](Transaction& tx) -> Result<Delivery> {
        TRY_ASSIGN(auto seen, tx.Get<store::WebhookRow>(id));
        if (seen)
          return Delivery{.outcome = "ignored", .note = "This delivery was received before."};
        TRY_ASSIGN(Delivery delivery, Process(tx, event, /*ours=*/false));
        TRY(tx.Insert(store::WebhookRow{.id = id,
                                        .source = "github",
                                        .event = event.event,
                                        .action = event.action,
                                        .repo = event.repo,
                                        .outcome = delivery.outcome,
                                        .note = delivery.note,
                                        .at = Now()}));
        return delivery;
      });
  platform_.flow.Wake();
  co_return done;
}

Task<Result<Delivery>> PullRequests::Follow(WebhookEvent event, std::optional<std::string> from) {
  auto done = co_await platform_.store.Write(
      [this, event, from](Transaction& tx) { return Process(tx, event, /*ours=*/true, from); });
  platform_.flow.Wake();
  co_return done;
}

Task<void> PullRequests::Remember(std::string id, WebhookEvent event, Delivery delivery) {
  Time now = Now();
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    remembered_ = 0;
  }
  if (++remembered_ > kRememberedPerMinute) co_return;
  auto word = [](const std::string& text) { return Shorten(ToUtf8(text), kMaxWord); };
  store::WebhookRow row{.id = delivery.outcome + "-" + RandomUuid(),
                        .source = "github",
                        .event = word(event.event),
                        .action = word(event.action),
                        .repo = word(event.repo),
                        .outcome = delivery.outcome,
                        .note = delivery.note,
                        .at = now};
  if (!id.empty()) row.note += fmt::format(" (delivery {})", word(id));
  auto done = co_await platform_.store.Write([this, row](Transaction& tx) -> Status {
    TRY(tx.Insert(row));
    return ForgetSome(tx, platform_.config.webhook_history);
  });
  if (!done)
    LogWarn("a webhook that was not taken is not remembered", {{"why", done.error().message()}});
}

Task<Result<Listed<store::WebhookRow>>> PullRequests::Deliveries(Page page) {
  using store::WebhookRow;
  co_return co_await platform_.store.Read([page](Transaction& tx) -> Result<Listed<WebhookRow>> {
    return ListPage(
        tx, Select<WebhookRow>().Order(&WebhookRow::at, /*descending=*/true).Order(&WebhookRow::id),
        page);
  });
}

}  // namespace caisson::work
