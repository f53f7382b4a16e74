// GitHub's REST API, as much of it as the platform needs. Works with github.com, GitHub Enterprise
// and anything that speaks the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/time.h"

namespace caisson::forge {

// "owner/name".
struct RepoName {
  std::string owner;
  std::string name;

  std::string full_name() const { return owner + "/" + name; }
};
// kInvalidArgument if it is no such name.
Result<RepoName> ParseRepoName(std::string_view text);

struct PullRequest {
  int64_t number = 0;
  std::string url;      // for people
  std::string node_id;  // its name in GraphQL
  std::string state;    // "open", "closed"
  std::string author;   // who opened it, a login
  std::string title, body;
  bool draft = false, merged = false;
  std::optional<bool> mergeable;
  std::string mergeable_state;  // GitHub's word: "clean", "behind", "dirty", "blocked" ...
  std::string head, head_sha, base;
  std::string merge_sha;
  std::string merged_by;  // not in lists
  int64_t commits = 0, additions = 0, deletions = 0, changed_files = 0;
  std::vector<std::string> labels;
};
struct NewPullRequest {
  std::string title, body, head, base;
  bool draft = false;
  std::vector<std::string> labels, reviewers;
};
struct PullRequestChange {  // only what is set is sent
  std::optional<std::string> title, body, state, base;
};
struct PullRequestFilter {
  std::string state = "open";  // "open", "closed", "all"
  std::string head, base;      // "" = any
  size_t limit = 100;
};
struct Issue {
  int64_t number = 0;
  std::string url, state, title, body;
  std::vector<std::string> labels, assignees;
};
struct Comment {
  int64_t id = 0;
  std::string url, body, author;
  Time at;
  // Of a review comment. A line that is not there any more is the one that was commented on.
  std::string path;
  int64_t line = 0;
  int64_t review_id = 0, in_reply_to = 0;  // 0 = none
};
struct NewReviewComment {
  std::string path, body;
  int64_t line = 0;        // 0: about the whole file
  int64_t start_line = 0;  // the first of several, 0 if it is about one
  std::string side;        // "RIGHT" (what is new, the default), "LEFT" (what was there)
};
struct Review {
  int64_t id = 0;
  std::string url, author, body;
  std::string state;  // "approved", "changes_requested", "commented", "dismissed", "pending"
  Time at;
};
struct NewReview {
  std::string event;  // "approve", "request_changes", "comment"
  std::string body;
  std::vector<NewReviewComment> comments;  // each at a line
};
struct RepositoryInfo {
  std::string full_name, default_branch, clone_url;
  bool is_private = false;
  bool can_pull = false, can_push = false, can_admin = false;
};
// What the token may, which is not always what its owner may.
struct Rights {
  bool pull = false, push = false, pull_requests = false;
  bool sufficient() const { return pull && push && pull_requests; }
};
struct Check {
  std::string name, status, conclusion, url;
};
// How many requests are left.
struct Budget {
  int64_t limit = 0, remaining = 0;
  std::optional<Time> resets_at;
  bool low() const { return limit > 0 && remaining * 10 < limit; }
};

// Errors: kAlreadyExists (a pull request is there already), kPermissionDenied (the token may not),
// kNotFound (repository, branch), kFailedPrecondition (not mergeable), kInvalidArgument (GitHub's
// words), kUnauthenticated, kResourceExhausted (rate limit; tells when), kUnavailable. No message
// ever holds the token.
class GitHub {
 public:
  // Uses config.github_token, or the App of config.github_app_*.
  GitHub(asio::any_io_executor executor, const Config& config);
  // Uses these tokens, separated by commas, and nothing else.
  GitHub(asio::any_io_executor executor, const Config& config, std::string_view tokens);
  ~GitHub();

  bool configured() const;
  // What goes into git's requests: a PAT, or an installation token that is renewed in time.
  Task<Result<std::string>> Token(bool refresh);
  // Whose token it is. kUnauthenticated: nobody's. An App's belongs to no account.
  Task<Result<std::string>> GetLogin();

  // Finds an open one of the same head first; `created` tells. 422 "already exists" finds it, too.
  struct Made {
    PullRequest pull_request;
    bool created = true;
  };
  Task<Result<Made>> CreatePullRequest(RepoName repo, NewPullRequest request);
  Task<Result<std::optional<PullRequest>>> FindPullRequest(RepoName repo, std::string head,
                                                           std::string state = "open");
  Task<Result<PullRequest>> GetPullRequest(RepoName repo, int64_t number);
  Task<Result<PullRequest>> UpdatePullRequest(RepoName repo, int64_t number,
                                              PullRequestChange change);
  Task<Result<std::vector<PullRequest>>> ListPullRequests(RepoName repo, PullRequestFilter filter);
  // "merge", "squash", "rebase"; the sha.
  Task<Result<std::string>> MergePullRequest(RepoName repo, int64_t number, std::string method,
                                             std::string title);
  // Merges the base into its branch, if the branch is still at `head_sha` ("" = wherever it is);
  // GitHub does it after the answer. kFailedPrecondition: there are conflicts, or nothing to merge.
  Task<Status> UpdateBranch(RepoName repo, int64_t number, std::string head_sha);
  Task<Status> MarkReadyForReview(RepoName repo, int64_t number);
  Task<Status> AddLabels(RepoName repo, int64_t number, std::vector<std::string> labels);
  Task<Status> RequestReviewers(RepoName repo, int64_t number, std::vector<std::string> reviewers);
  Task<Result<std::vector<Comment>>> ListReviewComments(RepoName repo, int64_t number);
  // About the last commit of the pull request.
  Task<Result<Comment>> CreateReviewComment(RepoName repo, int64_t number,
                                            NewReviewComment comment);
  Task<Result<Comment>> ReplyToReviewComment(RepoName repo, int64_t number, int64_t comment_id,
                                             std::string body);
  Task<Result<std::vector<Review>>> ListReviews(RepoName repo, int64_t number);
  // With its comments at lines, as one. Nobody can approve what they opened themselves.
  Task<Result<Review>> CreateReview(RepoName repo, int64_t number, NewReview review);
  Task<Result<std::vector<Check>>> ListChecks(RepoName repo, std::string sha);

  Task<Result<Issue>> CreateIssue(RepoName repo, std::string title, std::string body,
                                  std::vector<std::string> labels,
                                  std::vector<std::string> assignees);
  Task<Result<Issue>> GetIssue(RepoName repo, int64_t number);
  Task<Result<Comment>> AddComment(RepoName repo, int64_t number, std::string body);

  Task<Result<RepositoryInfo>> GetRepository(RepoName repo);
  // Tried with requests that cannot succeed: GitHub refuses them for what they ask if the token may
  // ask, and else because it may not. Changes nothing.
  Task<Result<Rights>> CheckRights(RepoName repo);
  // True: pushing to it directly is not allowed. kNotFound: there is no such branch.
  Task<Result<bool>> IsProtected(RepoName repo, std::string branch);
  // One that is gone already is no error.
  Task<Status> DeleteBranch(RepoName repo, std::string branch);

  // As the last answer told; GetBudget() asks, which costs nothing of it.
  Budget budget() const;
  Task<Result<Budget>> GetBudget();
  // Called when the budget falls below a tenth, once per window.
  void OnLowBudget(std::function<void(Budget)> called);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::forge
