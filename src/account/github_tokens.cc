#include "account/github_tokens.h"

#include "account/sealed_text.h"

namespace caisson::account {
namespace {

using store::GithubTokenRow;
using store::Select;
using store::Transaction;

constexpr const char* kNone =
    "pull requests are opened in your own name here (pull_request_identity), and this server has "
    "no "
    "GitHub token of yours: give it one with `caisson github-token set` or PUT "
    "/api/v1/auth/github-token";

std::string IdOf(const std::string& node, const std::string& user_id) {
  return user_id + ":" + node;
}

}  // namespace

Task<Result<GithubTokenRow>> GithubTokens::Set(std::string user_id, std::string token,
                                               std::string login) {
  GithubTokenRow row{.id = IdOf(store_.node(), user_id),
                     .user_id = std::move(user_id),
                     .login = std::move(login),
                     .created_at = Now()};
  CO_TRY_ASSIGN(row.sealed, Seal(secret_, row.id, token));
  CO_TRY(co_await store_.Write([row](Transaction& tx) -> Status {
    TRY_ASSIGN(auto known, tx.Get<GithubTokenRow>(row.id));
    return known ? tx.Update(row) : tx.Insert(row);
  }));
  co_return row;
}

Task<Result<std::optional<GithubTokenRow>>> GithubTokens::Find(std::string user_id) {
  std::string id = IdOf(store_.node(), user_id);
  co_return co_await store_.Read([id](Transaction& tx) { return tx.Get<GithubTokenRow>(id); });
}

Task<Result<std::string>> GithubTokens::Open(std::string user_id) {
  CO_TRY_ASSIGN(auto row, co_await Find(std::move(user_id)));
  if (!row) co_return Fail(Code::kUnauthenticated, "{}", kNone);
  auto token = Unseal(secret_, row->id, row->sealed);
  if (!token)
    co_return Fail(Code::kUnauthenticated,
                   "the GitHub token of {} cannot be opened ({}): give this server a new one",
                   row->login, token.error().message());
  co_return std::move(*token);
}

Task<Status> GithubTokens::Delete(std::string user_id) {
  std::string id = IdOf(store_.node(), user_id);
  CO_TRY(co_await store_.Write([id](Transaction& tx) {
    return tx.Delete(Select<GithubTokenRow>().Eq(&GithubTokenRow::id, id));
  }));
  co_return Status();
}

Status NeedGithubToken(Transaction& tx, const std::string& node, const std::string& user_id) {
  TRY_ASSIGN(auto row, tx.Get<GithubTokenRow>(IdOf(node, user_id)));
  if (!row) return Fail(Code::kFailedPrecondition, "{}", kNone);
  return {};
}

}  // namespace caisson::account
