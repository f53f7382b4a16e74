// The part of Accounts that is about people whom another service knows.
#include "account/accounts.h"
#include "base/id.h"
#include "store/person_rows.h"

namespace caisson::account {
namespace {

using store::IdentityRow;
using store::Select;
using store::Transaction;
using store::UserRow;

// SECURITY: whoever has the same name there as a user here is somebody else.
Result<std::string> FreeName(Transaction& tx, const std::string& login,
                             const std::string& identity) {
  for (const std::string& name : {login, fmt::format("{} ({})", login, identity)}) {
    TRY_ASSIGN(int64_t taken, tx.Count(Select<UserRow>().Eq(&UserRow::name, name)));
    if (taken == 0) return name;
  }
  return Fail(Code::kAlreadyExists, "there is a user '{} ({})' already", login, identity);
}

Result<UserRow> FindOrMake(Transaction& tx, const std::string& identity, const std::string& login) {
  TRY_ASSIGN(auto known, tx.Get<IdentityRow>(identity));
  if (known) {
    known->login = login;
    known->last_used_at = Now();
    TRY(tx.Update(*known));
    return tx.Need<UserRow>(known->user_id, "user");
  }
  UserRow user{.id = RandomUuid(), .role = "member", .created_at = Now()};
  TRY_ASSIGN(user.name, FreeName(tx, login, identity));
  TRY(tx.Insert(user));
  TRY(tx.Insert(IdentityRow{.id = identity,
                            .user_id = user.id,
                            .login = login,
                            .created_at = user.created_at,
                            .last_used_at = user.created_at}));
  return user;
}

}  // namespace

Task<Result<LoginTokens>> Accounts::LoginBy(std::string identity, std::string login) {
  CO_TRY_ASSIGN(UserRow user, co_await store_.Write([=](Transaction& tx) {
    return FindOrMake(tx, identity, login);
  }));
  if (user.disabled_at) co_return Fail(Code::kPermissionDenied, "this user is disabled");
  users_[user.id] = user;
  co_return co_await OpenLogin(std::move(user), /*key_hash=*/"");
}

}  // namespace caisson::account
