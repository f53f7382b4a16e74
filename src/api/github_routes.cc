#include "api/github_routes.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "api/github_codec.h"
#include "api/work_codec.h"
#include "base/log.h"
#include "base/text.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using forge::RepoName;
using work::TextOf;
using Services = GithubServices;

template <class T>
http::Response Array(const std::vector<T>& all) {
  json::array items;
  for (const T& one : all) items.push_back(Encode(one));
  return http::Response::Json(200, items);
}

Result<RepoName> RepoInBody(const Call& call) {
  return forge::ParseRepoName(TextOf(call.body, "repo"));
}
Result<RepoName> RepoInQuery(const Call& call) {
  return forge::ParseRepoName(TextParameter(call, "repo"));
}
Result<int64_t> NumberOf(const Call& call) {
  auto number = ParseInt<int64_t>(call.params.at("number"));
  if (!number || *number < 1) return Fail(Code::kNotFound, "Numbers begin with 1.");
  return *number;
}

Answer Create(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  forge::NewPullRequest request{.title = TextOf(call.body, "title"),
                                .body = TextOf(call.body, "body"),
                                .head = TextOf(call.body, "head"),
                                .base = TextOf(call.body, "base"),
                                .draft = work::TrueIn(call.body, "draft"),
                                .labels = work::TextsOf(call.body, "labels"),
                                .reviewers = work::TextsOf(call.body, "reviewers")};
  CO_TRY_ASSIGN(auto made,
                AsOurs(co_await services.github.CreatePullRequest(repo, std::move(request))));
  call.target = fmt::format("{}#{}", repo.full_name(), made.pull_request.number);
  json::object body = Encode(made.pull_request);
  body["created"] = made.created;
  co_return http::Response::Json(made.created ? 201 : 200, body);
}

Answer List(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  forge::PullRequestFilter filter{.head = TextParameter(call, "head"),
                                  .base = TextParameter(call, "base")};
  if (std::string state = TextParameter(call, "state"); !state.empty()) filter.state = state;
  filter.limit = static_cast<size_t>(NumberParameter(call, "limit", 100));
  CO_TRY_ASSIGN(auto found, AsOurs(co_await services.github.ListPullRequests(repo, filter)));
  co_return Array(found);
}

Answer Get(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetPullRequest(repo, number)));
  co_return http::Response::Json(200, Encode(one));
}

// The tasks of a pull request learn at once what was done to it; GitHub's webhook may tell it
// later, earlier or never. What failed here is not the caller's: the webhook is left for it.
Task<void> Tell(Services services, Call& call, RepoName repo, forge::PullRequest now,
                std::string action) {
  forge::WebhookEvent event = work::EventAbout(repo, now, std::move(action), call.who.user_id);
  auto told = co_await services.pull_requests.Follow(std::move(event));
  if (!told)
    LogWarn("the tasks of a pull request were not told what was done to it",
            {{"pull_request", call.target}, {"why", told.error().message()}});
}

Answer Update(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  forge::PullRequestChange change{OptionalText(call.body, "title"), OptionalText(call.body, "body"),
                                  OptionalText(call.body, "state"),
                                  OptionalText(call.body, "base")};
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.UpdatePullRequest(repo, number, change)));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  if (change.state)
    co_await Tell(services, call, repo, one, one.state == "closed" ? "closed" : "reopened");
  co_return http::Response::Json(200, Encode(one));
}

bool Passed(const forge::Check& check) {
  static constexpr std::array<std::string_view, 3> kGood = {"success", "neutral", "skipped"};
  return check.status == "completed" &&
         std::find(kGood.begin(), kGood.end(), check.conclusion) != kGood.end();
}

Answer Merge(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  if (!work::TrueIn(call.body, "ignore_checks")) {
    CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetPullRequest(repo, number)));
    CO_TRY_ASSIGN(auto checks, AsOurs(co_await services.github.ListChecks(repo, one.head_sha)));
    for (const forge::Check& check : checks)
      if (!one.merged && !Passed(check))
        co_return Fail(Code::kFailedPrecondition,
                       "The check {} has not passed ({}). Merge anyway with ignore_checks.",
                       check.name, check.conclusion.empty() ? check.status : check.conclusion);
  }
  std::string method = TextOf(call.body, "method");
  CO_TRY_ASSIGN(std::string sha,
                AsOurs(co_await services.github.MergePullRequest(
                    repo, number, method.empty() ? "merge" : method, TextOf(call.body, "title"))));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  auto merged = co_await services.github.GetPullRequest(repo, number);
  if (merged && merged->merged) co_await Tell(services, call, repo, *merged, "closed");
  co_return http::Response::Json(200, json::object{{"merged", true}, {"sha", sha}});
}

Answer UpdateBranch(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY(
      AsOurs(co_await services.github.UpdateBranch(repo, number, TextOf(call.body, "head_sha"))));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetPullRequest(repo, number)));
  co_return http::Response::Json(202, Encode(one));
}

Answer MarkReady(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY(AsOurs(co_await services.github.MarkReadyForReview(repo, number)));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetPullRequest(repo, number)));
  co_await Tell(services, call, repo, one, "ready_for_review");
  co_return http::Response::Json(200, Encode(one));
}

Answer ListChecks(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetPullRequest(repo, number)));
  CO_TRY_ASSIGN(auto checks, AsOurs(co_await services.github.ListChecks(repo, one.head_sha)));
  co_return Array(checks);
}

Answer ListReviewComments(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto comments, AsOurs(co_await services.github.ListReviewComments(repo, number)));
  co_return Array(comments);
}

forge::NewReviewComment RemarkOf(const json::object& body) {
  return {.path = TextOf(body, "path"),
          .body = TextOf(body, "body"),
          .line = work::IntOf(body, "line"),
          .start_line = work::IntOf(body, "start_line"),
          .side = TextOf(body, "side")};
}

Answer CreateReviewComment(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto made, AsOurs(co_await services.github.CreateReviewComment(
                               repo, number, RemarkOf(call.body))));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  co_return http::Response::Json(201, Encode(made));
}

Answer ListReviews(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto reviews, AsOurs(co_await services.github.ListReviews(repo, number)));
  co_return Array(reviews);
}

Answer CreateReview(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  forge::NewReview review{.event = TextOf(call.body, "event"), .body = TextOf(call.body, "body")};
  if (const json::value* comments = call.body.if_contains("comments"))
    for (const json::value& one : comments->as_array())
      review.comments.push_back(RemarkOf(one.as_object()));
  CO_TRY_ASSIGN(auto made,
                AsOurs(co_await services.github.CreateReview(repo, number, std::move(review))));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  co_return http::Response::Json(201, Encode(made));
}

Answer Reply(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  auto comment = ParseInt<int64_t>(call.params.at("comment"));
  if (!comment) co_return Fail(Code::kNotFound, "There is no such comment.");
  CO_TRY_ASSIGN(auto made, AsOurs(co_await services.github.ReplyToReviewComment(
                               repo, number, *comment, TextOf(call.body, "body"))));
  co_return http::Response::Json(201, Encode(made));
}

Answer CreateIssue(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(auto made,
                AsOurs(co_await services.github.CreateIssue(
                    repo, TextOf(call.body, "title"), TextOf(call.body, "body"),
                    work::TextsOf(call.body, "labels"), work::TextsOf(call.body, "assignees"))));
  call.target = fmt::format("{}#{}", repo.full_name(), made.number);
  co_return http::Response::Json(201, Encode(made));
}

Answer GetIssue(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInQuery(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto one, AsOurs(co_await services.github.GetIssue(repo, number)));
  co_return http::Response::Json(200, Encode(one));
}

Answer AddComment(Services services, Call& call) {
  CO_TRY_ASSIGN(RepoName repo, RepoInBody(call));
  CO_TRY_ASSIGN(int64_t number, NumberOf(call));
  CO_TRY_ASSIGN(auto made, AsOurs(co_await services.github.AddComment(repo, number,
                                                                      TextOf(call.body, "body"))));
  call.target = fmt::format("{}#{}", repo.full_name(), number);
  co_return http::Response::Json(201, Encode(made));
}

Answer GetRepository(Services services, Call& call) {
  RepoName repo{call.params.at("owner"), call.params.at("name")};
  CO_TRY_ASSIGN(auto info, AsOurs(co_await services.github.GetRepository(std::move(repo))));
  co_return http::Response::Json(200, Encode(info));
}

Answer GetRights(Services services, Call& call) {
  RepoName repo{call.params.at("owner"), call.params.at("name")};
  CO_TRY_ASSIGN(auto rights, AsOurs(co_await services.github.CheckRights(std::move(repo))));
  co_return http::Response::Json(200, Encode(rights));
}

Answer GetRateLimit(Services services, Call&) {
  CO_TRY_ASSIGN(auto budget, AsOurs(co_await services.github.GetBudget()));
  co_return http::Response::Json(200, Encode(budget));
}

using Function = Answer (*)(Services, Call&);

// What changes something at GitHub is done in the name that the settings say.
Answer Write(Function handler, Services services, Call& call) {
  CO_TRY_ASSIGN(auto github, AsOurs(co_await services.authors.Of(call.who.user_id)));
  co_return co_await handler({*github, services.authors, services.pull_requests, services.config},
                             call);
}

// What most of them have in common: one answer, and the repository in the query of a GET.
struct Route {
  std::string_view method, pattern, id, summary, request;
  int status;
  std::string_view answer;
  Function handler;
};
#define PULLS "/api/v1/github/pull-requests"
#define ISSUES "/api/v1/github/issues"
// clang-format off
constexpr std::array kRoutes = {
    Route{"POST", PULLS, "createPullRequest",
          "Open a pull request, or find the open one of the same branch (200)",
          "NewPullRequest", 201, "PullRequest", Create},
    Route{"GET", PULLS, "listPullRequests", "Pull requests of a repository, newest first",
          "", 200, "PullRequestList", List},
    Route{"GET", PULLS "/{number}", "getPullRequest", "One pull request",
          "", 200, "PullRequest", Get},
    Route{"PATCH", PULLS "/{number}", "updatePullRequest", "Change its title, text, state or base",
          "PullRequestChange", 200, "PullRequest", Update},
    Route{"POST", PULLS "/{number}/merge", "mergePullRequest", "Merge it, if its checks have passed",
          "Merge", 200, "Merged", Merge},
    Route{"POST", PULLS "/{number}/update-branch", "updatePullRequestBranch",
          "Merge its base into its branch; GitHub does it after the answer",
          "BranchUpdate", 202, "PullRequest", UpdateBranch},
    Route{"POST", PULLS "/{number}/ready", "markPullRequestReady", "A draft becomes ready for review",
          "OfRepository", 200, "PullRequest", MarkReady},
    Route{"GET", PULLS "/{number}/checks", "listChecks", "The checks of its last commit",
          "", 200, "CheckList", ListChecks},
    Route{"GET", PULLS "/{number}/comments", "listReviewComments", "What reviewers wrote at lines",
          "", 200, "CommentList", ListReviewComments},
    Route{"POST", PULLS "/{number}/comments", "createReviewComment",
          "Say something at a line or a file of its last commit",
          "NewReviewComment", 201, "Comment", CreateReviewComment},
    Route{"GET", PULLS "/{number}/reviews", "listReviews", "What reviewers decided",
          "", 200, "ReviewList", ListReviews},
    Route{"POST", PULLS "/{number}/reviews", "createReview",
          "Approve it, ask for changes, or comment it, with comments at lines",
          "NewReview", 201, "Review", CreateReview},
    Route{"POST", PULLS "/{number}/comments/{comment}/replies", "replyToReviewComment",
          "Answer a reviewer", "NewComment", 201, "Comment", Reply},
    Route{"POST", ISSUES, "createIssue", "Open an issue", "NewIssue", 201, "Issue", CreateIssue},
    Route{"GET", ISSUES "/{number}", "getIssue", "One issue", "", 200, "Issue", GetIssue},
    Route{"POST", ISSUES "/{number}/comments", "addComment", "Comment an issue or a pull request",
          "NewComment", 201, "Comment", AddComment},
    Route{"GET", "/api/v1/github/repos/{owner}/{name}", "getRepository",
          "A repository, and what the server's token may do with it",
          "", 200, "GithubRepository", GetRepository},
    Route{"GET", "/api/v1/github/repos/{owner}/{name}/rights", "getRepositoryRights",
          "Whether the server's token may push branches and open pull requests, tried harmlessly",
          "", 200, "GithubRights", GetRights},
    Route{"GET", "/api/v1/github/rate-limit", "getGithubRateLimit",
          "How many requests to GitHub are left", "", 200, "GithubBudget", GetRateLimit},
};
// clang-format on
#undef PULLS
#undef ISSUES

std::vector<Parameter> ParametersOf(const Route& route) {
  if (route.method != "GET" || route.pattern.starts_with("/api/v1/github/repos/") ||
      route.handler == GetRateLimit)
    return {};
  std::vector<Parameter> parameters = {{.name = "repo", .description = "OWNER/NAME, needed"}};
  if (route.handler == List)
    parameters.insert(
        parameters.end(),
        {{.name = "state", .description = "default: open", .values = {"open", "closed", "all"}},
         {.name = "head", .description = "of this branch"},
         {.name = "base", .description = "into this branch"},
         {.name = "limit",
          .type = "integer",
          .description = "at most so many",
          .min = 1,
          .max = 1000}});
  return parameters;
}

}  // namespace

void AddGithubRoutes(Frame& frame, GithubServices services) {
  AddGithubSchemas(frame);
  for (const Route& route : kRoutes) {
    std::map<int, std::string_view> responses = {{route.status, route.answer}, {409, "Error"}};
    if (route.handler == Create) responses[200] = route.answer;
    frame.Add({.method = route.method,
               .pattern = route.pattern,
               .tag = "github",
               .id = route.id,
               .summary = route.summary,
               .parameters = ParametersOf(route),
               .request = route.request,
               .responses = std::move(responses),
               .handler = [services, &route](Call& call) {
                 return route.method == "GET" ? route.handler(services, call)
                                              : Write(route.handler, services, call);
               }});
  }
}

}  // namespace caisson::api
