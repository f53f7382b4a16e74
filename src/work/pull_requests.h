// What becomes of a task or a session when something happens to its pull request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "forge/github.h"
#include "forge/webhook.h"
#include "store/sandbox_rows.h"
#include "store/session_rows.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct Delivery {
  std::string outcome;                // "processed", "ignored", "refused", "failed"
  std::string note;                   // why, in a sentence
  std::vector<std::string> task_ids;  // those it was about
  std::string merged_branch;          // one that is merged and that a task made, "" if none
};

class PullRequests {
 public:
  // Tells the listeners of a session that its pull request has another state.
  using TellSession =
      std::function<Status(store::Transaction& tx, const store::SessionRow& session)>;

  explicit PullRequests(Platform platform, TellSession tell_session = {})
      : platform_(platform), tell_session_(std::move(tell_session)) {}

  // A webhook of GitHub whose signature was checked; `id` is the sender's. One that was seen before
  // is ignored. The row of the delivery, the tasks and their events are one transaction:
  //
  //   approved            state "approved", it stays in its column       pr_approved
  //   changes requested   state "open", the words become its feedback    pr_changes_requested
  //   merged              state "merged", column "done"                  pr_merged
  //   closed              state "closed", from "in_review" to "failed"   pr_closed
  //   reopened            state "open" or "draft", column "in_review"    pr_reopened
  // A session has the same states, and no column. What is known already changes nothing: it may
  // have come by Follow().
  Task<Result<Delivery>> Receive(std::string id, forge::WebhookEvent event);
  // The same for something that this server did itself or found out, before or after GitHub tells
  // it. With `from` only for those whose pull request is in this state: what was found out may be
  // old when it arrives here.
  Task<Result<Delivery>> Follow(forge::WebhookEvent event, std::optional<std::string> from = {});
  // One that was not taken, or went wrong: `delivery.outcome` is "refused" or "failed", `id` what
  // the sender says. At most webhook_history of them are remembered, and not many per minute:
  // anybody can send them.
  Task<void> Remember(std::string id, forge::WebhookEvent event, Delivery delivery);
  // All that are remembered, newest first.
  Task<Result<Listed<store::WebhookRow>>> Deliveries(Page page);

 private:
  // `ours`: this server did it or found it out.
  Result<Delivery> Process(store::Transaction& tx, const forge::WebhookEvent& event, bool ours,
                           const std::optional<std::string>& from = {});

  Platform platform_;
  TellSession tell_session_;
  Time minute_;         // when Remember() began to count
  int remembered_ = 0;  // since then
};

// What GitHub would send about a pull request that is like this now.
forge::WebhookEvent EventAbout(const forge::RepoName& repo, const forge::PullRequest& now,
                               std::string action, std::string actor);

// With delete_merged_branch, if there is one. A failure only leaves a branch behind, and is logged.
Task<void> DeleteMergedBranch(const Config& config, forge::GitHub& github, forge::RepoName repo,
                              Delivery delivery);

// Adds those of the comments that belong to the event's review to its words, each with its place.
// The words alone are often no more than "see below".
void AddRemarks(forge::WebhookEvent& event, const std::vector<forge::Comment>& comments);

// True if `repo_url` is the repository `full_name` ("owner/name") of the forge in the settings.
bool IsRepository(const Config& config, std::string_view repo_url, std::string_view full_name);

}  // namespace caisson::work
