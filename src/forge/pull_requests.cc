// Pull requests. What must happen once is looked for before it is done, and again when nobody
// knows whether it was.
#include <algorithm>
#include <array>

#include "base/log.h"
#include "forge/codec.h"
#include "forge/fields.h"
#include "forge/github_impl.h"

namespace caisson::forge {
namespace {

constexpr int kCreateAttempts = 3;
constexpr std::array<std::string_view, 3> kMergeMethods = {"merge", "squash", "rebase"};

std::string What(const RepoName& repo, int64_t number) {
  return fmt::format("pull request {} of {}", number, repo.full_name());
}

std::string PullPath(int64_t number, std::string_view rest = "") {
  return fmt::format("/pulls/{}{}", number, rest);
}

// Nobody knows whether GitHub did it.
bool Lost(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kDeadlineExceeded;
}

}  // namespace

Task<Result<GitHub::Made>> GitHub::CreatePullRequest(RepoName repo, NewPullRequest request) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, "/pulls"));
  if (request.base.empty()) {
    CO_TRY_ASSIGN(RepositoryInfo info, co_await GetRepository(repo));
    request.base = info.default_branch;
  }
  Made made{.created = false};
  bool lost = false;  // an answer
  for (int attempt = 1;; ++attempt) {
    CO_TRY_ASSIGN(auto existing, co_await FindPullRequest(repo, request.head));
    if (existing) {
      made.pull_request = std::move(*existing);
      // There was none when we looked first, so it is the one we asked for.
      made.created = lost;
      break;
    }
    auto answer = co_await impl_->caller.Call({.method = "POST",
                                               .path = path,
                                               .what = "a pull request for " + request.head,
                                               .body = WriteNewPullRequest(request),
                                               .repeatable = false});
    if (answer) {
      CO_TRY_ASSIGN(made.pull_request, ReadPullRequest(*answer));
      made.created = true;
      break;
    }
    lost = lost || Lost(answer.error());
    bool retry = Lost(answer.error()) || answer.error().code() == Code::kAlreadyExists;
    if (!retry || attempt == kCreateAttempts) co_return tl::unexpected(answer.error());
  }
  // The pull request is there; what decorates it may fail without undoing it.
  int64_t number = made.pull_request.number;
  if (!request.labels.empty())
    if (Status done = co_await AddLabels(repo, number, request.labels); !done)
      LogWarn("labels were not set", {{"pull_request", number}, {"why", done.error().message()}});
  if (!request.reviewers.empty())
    if (Status done = co_await RequestReviewers(repo, number, request.reviewers); !done)
      LogWarn("reviewers were not asked",
              {{"pull_request", number}, {"why", done.error().message()}});
  co_return made;
}

Task<Result<std::optional<PullRequest>>> GitHub::FindPullRequest(RepoName repo, std::string head,
                                                                 std::string state) {
  CO_TRY_ASSIGN(auto found,
                co_await ListPullRequests(repo, {.state = state, .head = head, .limit = 1}));
  if (found.empty()) co_return std::optional<PullRequest>();
  co_return std::move(found.front());
}

Task<Result<PullRequest>> GitHub::GetPullRequest(RepoName repo, int64_t number) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, PullPath(number)));
  CO_TRY_ASSIGN(json::value body,
                co_await impl_->caller.Call(
                    {.method = "GET", .path = std::move(path), .what = What(repo, number)}));
  co_return ReadPullRequest(body);
}

Task<Result<PullRequest>> GitHub::UpdatePullRequest(RepoName repo, int64_t number,
                                                    PullRequestChange change) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, PullPath(number)));
  CO_TRY_ASSIGN(json::value body, co_await impl_->caller.Call({.method = "PATCH",
                                                               .path = std::move(path),
                                                               .what = What(repo, number),
                                                               .body = WriteChange(change)}));
  co_return ReadPullRequest(body);
}

Task<Result<std::vector<PullRequest>>> GitHub::ListPullRequests(RepoName repo,
                                                                PullRequestFilter filter) {
  size_t page = std::clamp<size_t>(filter.limit, 1, 100);
  std::string query = fmt::format("/pulls?state={}&per_page={}", PercentEncode(filter.state), page);
  // GitHub wants the owner before the branch, and ignores a head without one.
  std::string head = filter.head;
  if (!head.empty() && head.find(':') == head.npos) head = repo.owner + ":" + head;
  if (!head.empty()) query += "&head=" + PercentEncode(head);
  if (!filter.base.empty()) query += "&base=" + PercentEncode(filter.base);
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, query));
  CO_TRY_ASSIGN(auto items,
                co_await impl_->caller.Pages({.method = "GET",
                                              .path = std::move(path),
                                              .what = "pull requests of " + repo.full_name()},
                                             filter.limit));
  std::vector<PullRequest> found;
  for (const json::value& item : items) {
    CO_TRY_ASSIGN(PullRequest one, ReadPullRequest(item));
    found.push_back(std::move(one));
  }
  co_return found;
}

Task<Result<std::string>> GitHub::MergePullRequest(RepoName repo, int64_t number,
                                                   std::string method, std::string title) {
  if (std::find(kMergeMethods.begin(), kMergeMethods.end(), method) == kMergeMethods.end())
    co_return Fail(Code::kInvalidArgument, "A merge method is one of merge, squash and rebase.");
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, PullPath(number, "/merge")));
  json::object fields{{"merge_method", method}};
  if (!title.empty()) fields["commit_title"] = title;
  auto answer = co_await impl_->caller.Call({.method = "PUT",
                                             .path = path,
                                             .what = What(repo, number),
                                             .body = fields,
                                             .repeatable = false});
  if (answer) co_return Text(*answer, "sha");
  // What was merged, by us a moment ago or by somebody else, is merged.
  Code code = answer.error().code();
  if (code != Code::kFailedPrecondition && !Lost(answer.error()))
    co_return tl::unexpected(answer.error());
  auto now = co_await GetPullRequest(repo, number);
  if (now && now->merged) co_return now->merge_sha;
  co_return tl::unexpected(answer.error());
}

Task<Status> GitHub::UpdateBranch(RepoName repo, int64_t number, std::string head_sha) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, PullPath(number, "/update-branch")));
  if (head_sha.empty()) {
    CO_TRY_ASSIGN(PullRequest one, co_await GetPullRequest(repo, number));
    head_sha = one.head_sha;
  }
  auto answer = co_await impl_->caller.Call({.method = "PUT",
                                             .path = path,
                                             .what = What(repo, number),
                                             .body = json::object{{"expected_head_sha", head_sha}},
                                             .repeatable = false});
  if (answer) co_return Status();
  Error error = answer.error();
  if (Lost(error)) {
    auto now = co_await GetPullRequest(repo, number);
    if (now && now->head_sha != head_sha) co_return Status();
  }
  // GitHub has one status for whatever stands against it, and no code.
  if (error.code() != Code::kInvalidArgument) co_return tl::unexpected(std::move(error));
  bool conflict = error.message().find("conflict") != std::string::npos;
  co_return Fail(
      Code::kFailedPrecondition, "The branch of {} was not updated{}: {}", What(repo, number),
      conflict ? "; its conflicts have to be resolved in a checkout first" : "", error.message());
}

Task<Status> GitHub::MarkReadyForReview(RepoName repo, int64_t number) {
  CO_TRY_ASSIGN(PullRequest one, co_await GetPullRequest(repo, number));
  if (!one.draft) co_return Status();
  json::object fields{
      {"query",
       "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { "
       "pullRequest { isDraft } } }"},
      {"variables", {{"id", one.node_id}}}};
  CO_TRY_ASSIGN(json::value body, co_await impl_->caller.Call({.method = "POST",
                                                               .path = "/graphql",
                                                               .what = What(repo, number),
                                                               .body = std::move(fields)}));
  // GraphQL fails with status 200.
  const json::array* errors = List(body, "errors");
  if (!errors || errors->empty()) co_return Status();
  std::string type = Text(errors->front(), "type");
  Code code = type == "FORBIDDEN"      ? Code::kPermissionDenied
              : type == "NOT_FOUND"    ? Code::kNotFound
              : type == "RATE_LIMITED" ? Code::kResourceExhausted
                                       : Code::kFailedPrecondition;
  co_return Fail(code, "{} cannot be marked as ready: {}", What(repo, number),
                 Text(errors->front(), "message"));
}

Task<Status> GitHub::RequestReviewers(RepoName repo, int64_t number,
                                      std::vector<std::string> reviewers) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, PullPath(number, "/requested_reviewers")));
  CO_TRY(co_await impl_->caller.Call({.method = "POST",
                                      .path = std::move(path),
                                      .what = What(repo, number),
                                      .body = json::object{{"reviewers", WriteList(reviewers)}}}));
  co_return Status();
}

}  // namespace caisson::forge
