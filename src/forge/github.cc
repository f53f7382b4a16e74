#include "forge/github.h"

#include <algorithm>

#include "forge/fields.h"
#include "forge/github_impl.h"

namespace caisson::forge {
namespace {

constexpr size_t kMaxName = 100;

// SECURITY: it becomes a part of a URL's path.
bool IsName(std::string_view text) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxName &&
         text.find_first_not_of('.') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), plain);
}

}  // namespace

Result<RepoName> ParseRepoName(std::string_view text) {
  size_t slash = text.find('/');
  RepoName repo;
  if (slash != text.npos)
    repo = {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
  if (!IsName(repo.owner) || !IsName(repo.name))
    return Fail(Code::kInvalidArgument, "A repository is named OWNER/NAME.");
  return repo;
}

Result<std::string> RepoPath(const RepoName& repo, std::string_view rest) {
  TRY(ParseRepoName(repo.full_name()));
  return fmt::format("/repos/{}{}", repo.full_name(), rest);
}

GitHub::GitHub(asio::any_io_executor executor, const Config& config)
    : impl_(std::make_unique<Impl>(std::move(executor), config)) {}
GitHub::GitHub(asio::any_io_executor executor, const Config& config, std::string_view tokens)
    : impl_(std::make_unique<Impl>(std::move(executor), config, tokens)) {}
GitHub::~GitHub() = default;

bool GitHub::configured() const { return impl_->caller.configured(); }

Task<Result<std::string>> GitHub::Token(bool refresh) {
  co_return co_await impl_->caller.Token(refresh);
}

Task<Result<std::string>> GitHub::GetLogin() {
  CO_TRY_ASSIGN(json::value user,
                co_await impl_->caller.Call(
                    {.method = "GET", .path = "/user", .what = "the owner of the token"}));
  std::string login = Text(user, "login");
  if (login.empty()) co_return Fail(Code::kUnavailable, "GitHub does not say whose token it is.");
  co_return login;
}

Budget GitHub::budget() const {
  const TokenPool::Slot* slot = impl_->caller.pool().current();
  return slot ? slot->budget : Budget();
}

Task<Result<Budget>> GitHub::GetBudget() {
  CO_TRY(co_await impl_->caller.Call(
      {.method = "GET", .path = "/rate_limit", .what = "the rate limit"}));
  co_return budget();
}

void GitHub::OnLowBudget(std::function<void(Budget)> called) {
  impl_->caller.pool().low = std::move(called);
}

}  // namespace caisson::forge
