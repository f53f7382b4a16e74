// What reviewers say about a pull request: as a whole, and at lines. What is said is said once: it
// is not repeated when nobody knows whether GitHub heard it.
#include <map>

#include "forge/codec.h"
#include "forge/fields.h"
#include "forge/github_impl.h"

namespace caisson::forge {
namespace {

constexpr size_t kMaxListed = 1000;
const std::map<std::string_view, std::string_view> kVerdicts = {
    {"approve", "APPROVE"}, {"request_changes", "REQUEST_CHANGES"}, {"comment", "COMMENT"}};

std::string What(const RepoName& repo, int64_t number) {
  return fmt::format("pull request {} of {}", number, repo.full_name());
}

Result<std::string> PullPath(const RepoName& repo, int64_t number, std::string_view rest) {
  return RepoPath(repo, fmt::format("/pulls/{}{}", number, rest));
}

json::object WriteComment(const NewReviewComment& comment) {
  json::object body{{"path", comment.path}, {"body", comment.body}};
  if (comment.line == 0) {
    body["subject_type"] = "file";
    return body;
  }
  std::string side = comment.side.empty() ? "RIGHT" : comment.side;
  body["line"] = comment.line;
  body["side"] = side;
  if (comment.start_line > 0) {
    body["start_line"] = comment.start_line;
    body["start_side"] = side;
  }
  return body;
}

}  // namespace

Task<Result<std::vector<Comment>>> GitHub::ListReviewComments(RepoName repo, int64_t number) {
  CO_TRY_ASSIGN(std::string path, PullPath(repo, number, "/comments?per_page=100"));
  CO_TRY_ASSIGN(
      auto items,
      co_await impl_->caller.Pages(
          {.method = "GET", .path = std::move(path), .what = What(repo, number)}, kMaxListed));
  std::vector<Comment> comments;
  for (const json::value& item : items) comments.push_back(ReadComment(item));
  co_return comments;
}

Task<Result<Comment>> GitHub::CreateReviewComment(RepoName repo, int64_t number,
                                                  NewReviewComment comment) {
  CO_TRY_ASSIGN(std::string path, PullPath(repo, number, "/comments"));
  CO_TRY_ASSIGN(PullRequest one, co_await GetPullRequest(repo, number));
  json::object body = WriteComment(comment);
  body["commit_id"] = one.head_sha;
  CO_TRY_ASSIGN(json::value made,
                co_await impl_->caller.Call({.method = "POST",
                                             .path = std::move(path),
                                             .what = "a comment on " + What(repo, number),
                                             .body = std::move(body),
                                             .repeatable = false}));
  co_return ReadComment(made);
}

Task<Result<Comment>> GitHub::ReplyToReviewComment(RepoName repo, int64_t number,
                                                   int64_t comment_id, std::string body) {
  CO_TRY_ASSIGN(std::string path,
                PullPath(repo, number, fmt::format("/comments/{}/replies", comment_id)));
  CO_TRY_ASSIGN(json::value made, co_await impl_->caller.Call({.method = "POST",
                                                               .path = std::move(path),
                                                               .what = What(repo, number),
                                                               .body = json::object{{"body", body}},
                                                               .repeatable = false}));
  co_return ReadComment(made);
}

Task<Result<std::vector<Review>>> GitHub::ListReviews(RepoName repo, int64_t number) {
  CO_TRY_ASSIGN(std::string path, PullPath(repo, number, "/reviews?per_page=100"));
  CO_TRY_ASSIGN(
      auto items,
      co_await impl_->caller.Pages(
          {.method = "GET", .path = std::move(path), .what = What(repo, number)}, kMaxListed));
  std::vector<Review> reviews;
  for (const json::value& item : items) reviews.push_back(ReadReview(item));
  co_return reviews;
}

Task<Result<Review>> GitHub::CreateReview(RepoName repo, int64_t number, NewReview review) {
  auto verdict = kVerdicts.find(review.event);
  if (verdict == kVerdicts.end())
    co_return Fail(Code::kInvalidArgument,
                   "A review is one of approve, request_changes and comment.");
  CO_TRY_ASSIGN(std::string path, PullPath(repo, number, "/reviews"));
  json::object body{{"event", verdict->second}};
  if (!review.body.empty()) body["body"] = review.body;
  json::array comments;
  for (const NewReviewComment& comment : review.comments) comments.push_back(WriteComment(comment));
  if (!comments.empty()) body["comments"] = std::move(comments);
  CO_TRY_ASSIGN(json::value made,
                co_await impl_->caller.Call({.method = "POST",
                                             .path = std::move(path),
                                             .what = "a review of " + What(repo, number),
                                             .body = std::move(body),
                                             .repeatable = false}));
  co_return ReadReview(made);
}

}  // namespace caisson::forge
