// Repositories and their branches.
#include "forge/codec.h"
#include "forge/fields.h"
#include "forge/github_impl.h"

namespace caisson::forge {
namespace {

// No commit has this name.
constexpr std::string_view kNoCommit = "0000000000000000000000000000000000000000";

// Whether the token may do what was tried and must have failed.
Result<bool> Allowed(const Result<json::value>& tried) {
  if (tried) return Fail(Code::kInternal, "GitHub did what cannot be done.");
  switch (tried.error().code()) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kAlreadyExists:
      return true;
    case Code::kPermissionDenied:
    case Code::kNotFound:
      return false;
    default:
      return tl::unexpected(tried.error());
  }
}

}  // namespace

Task<Result<RepositoryInfo>> GitHub::GetRepository(RepoName repo) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, ""));
  CO_TRY_ASSIGN(
      json::value body,
      co_await impl_->caller.Call(
          {.method = "GET", .path = std::move(path), .what = "repository " + repo.full_name()}));
  co_return ReadRepository(body);
}

Task<Result<Rights>> GitHub::CheckRights(RepoName repo) {
  CO_TRY_ASSIGN(RepositoryInfo info, co_await GetRepository(repo));
  Rights rights{.pull = info.can_pull};
  if (!info.can_push) co_return rights;
  // A fine-grained token has its owner's role here, whatever it may itself.
  std::string what = "a try of what may be done with " + repo.full_name();
  CO_TRY_ASSIGN(std::string refs, RepoPath(repo, "/git/refs"));
  CO_TRY_ASSIGN(
      rights.push,
      Allowed(co_await impl_->caller.Call(
          {.method = "POST",
           .path = std::move(refs),
           .what = what,
           .body = json::object{{"ref", "refs/heads/caisson-may-push"}, {"sha", kNoCommit}}})));
  CO_TRY_ASSIGN(std::string pulls, RepoPath(repo, "/pulls"));
  const std::string& branch = info.default_branch;
  CO_TRY_ASSIGN(rights.pull_requests,
                Allowed(co_await impl_->caller.Call(
                    {.method = "POST",
                     .path = std::move(pulls),
                     .what = what,
                     .body = json::object{
                         {"title", "May one be opened?"}, {"head", branch}, {"base", branch}}})));
  co_return rights;
}

Task<Result<bool>> GitHub::IsProtected(RepoName repo, std::string branch) {
  // The branch itself tells, which needs less of a token than asking for its protection.
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, "/branches/" + PercentEncode(branch)));
  CO_TRY_ASSIGN(json::value body,
                co_await impl_->caller.Call(
                    {.method = "GET",
                     .path = std::move(path),
                     .what = fmt::format("branch {} of {}", branch, repo.full_name())}));
  co_return Flag(body, "protected");
}

Task<Status> GitHub::DeleteBranch(RepoName repo, std::string branch) {
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, "/git/refs/" + PercentEncode("heads/" + branch)));
  auto done = co_await impl_->caller.Call(
      {.method = "DELETE",
       .path = std::move(path),
       .what = fmt::format("branch {} of {}", branch, repo.full_name())});
  if (!done && done.error().code() != Code::kNotFound) co_return tl::unexpected(done.error());
  co_return Status();
}

Task<Result<std::vector<Check>>> GitHub::ListChecks(RepoName repo, std::string sha) {
  constexpr size_t kMaxChecks = 1000;
  CO_TRY_ASSIGN(std::string path, RepoPath(repo, fmt::format("/commits/{}/check-runs?per_page=100",
                                                             PercentEncode(sha))));
  CO_TRY_ASSIGN(auto items, co_await impl_->caller.Pages(
                                {.method = "GET",
                                 .path = std::move(path),
                                 .what = fmt::format("commit {} of {}", sha, repo.full_name())},
                                kMaxChecks, "check_runs"));
  std::vector<Check> checks;
  for (const json::value& item : items) checks.push_back(ReadCheck(item));
  co_return checks;
}

}  // namespace caisson::forge
