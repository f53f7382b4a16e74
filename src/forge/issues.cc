// Issues, and what is said about them; for comments and labels a pull request is an issue, too.
#include "forge/codec.h"
#include "forge/fields.h"
#include "forge/github_impl.h"

namespace caisson::forge {
namespace {

std::string What(const RepoName& repo, int64_t number) {
  return fmt::format("issue {} of {}", number, repo.full_name());
}

}  // namespace

Task<Result<Issue>> GitHub::CreateIssue(RepoName repo, std::string title, std::string body,
                                        std::vector<std::string> labels,
                                        std::vector<std::string> assignees) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, "/issues"));
  json::object fields{{"title", title}, {"body", body}};
  if (!labels.empty()) fields["labels"] = WriteList(labels);
  if (!assignees.empty()) fields["assignees"] = WriteList(assignees);
  CO_TRY_ASSIGN(json::value made,
                co_await impl_->caller.Call({.method = "POST",
                                             .path = std::move(path),
                                             .what = "a new issue of " + repo.full_name(),
                                             .body = std::move(fields),
                                             .repeatable = false}));
  co_return ReadIssue(made);
}

Task<Result<Issue>> GitHub::GetIssue(RepoName repo, int64_t number) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, fmt::format("/issues/{}", number)));
  CO_TRY_ASSIGN(json::value body,
                co_await impl_->caller.Call(
                    {.method = "GET", .path = std::move(path), .what = What(repo, number)}));
  co_return ReadIssue(body);
}

Task<Result<Comment>> GitHub::AddComment(RepoName repo, int64_t number, std::string body) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, fmt::format("/issues/{}/comments", number)));
  CO_TRY_ASSIGN(json::value made, co_await impl_->caller.Call({.method = "POST",
                                                               .path = std::move(path),
                                                               .what = What(repo, number),
                                                               .body = json::object{{"body", body}},
                                                               .repeatable = false}));
  co_return ReadComment(made);
}

Task<Status> GitHub::AddLabels(RepoName repo, int64_t number, std::vector<std::string> labels) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, fmt::format("/issues/{}/labels", number)));
  CO_TRY(co_await impl_->caller.Call({.method = "POST",
                                      .path = std::move(path),
                                      .what = What(repo, number),
                                      .body = json::object{{"labels", WriteList(labels)}}}));
  co_return Status();
}

}  // namespace caisson::forge
