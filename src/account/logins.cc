// The part of Accounts that is about logins: tokens, their renewal, their end.
#include <boost/json.hpp>

#include "account/accounts.h"
#include "account/token.h"
#include "base/encoding.h"
#include "base/id.h"

namespace caisson::account {
namespace {

using store::LoginRow;
using store::Select;
using store::Transaction;
using store::UserRow;

constexpr size_t kRefreshBytes = 32;

std::string HashOf(std::string_view token) { return HexEncode(Sha256(token)); }

// A refresh token names its login, so that one that was used before still leads to it.
std::string NewRefresh(const std::string& login_id) {
  return fmt::format("{}.{}", login_id, RandomHex(kRefreshBytes));
}

std::string ByAddress(const std::string& address) { return "address:" + address; }
std::string ByName(const std::string& name) { return "name:" + HexEncode(Sha256(name)); }

auto TooManyFailures() {
  return Fail(Code::kResourceExhausted,
              "too many logins have failed: wait before the next attempt");
}
auto Unauthenticated() { return Fail(Code::kUnauthenticated, "the login is over: log in again"); }

}  // namespace

std::string Accounts::LoginOf(std::string_view refresh_token) {
  return std::string(refresh_token.substr(0, refresh_token.find('.')));
}

LoginTokens Accounts::TokensFor(const UserRow& user, const std::string& login_id,
                                std::string refresh) const {
  Time until = Now() + std::chrono::minutes(config_.login_access_minutes);
  return {.user = user,
          .access = SignAccess(secret_, {user.id, login_id, until}),
          .refresh = std::move(refresh),
          .csrf = CsrfOf(login_id)};
}

std::chrono::seconds Accounts::LoginWait(const std::string& name,
                                         const std::string& address) const {
  return std::max(failures_.Wait(ByAddress(address)), failures_.Wait(ByName(name)));
}

Task<Result<LoginTokens>> Accounts::Login(std::string name, std::string password,
                                          std::string address) {
  if (LoginWait(name, address).count() > 0) co_return TooManyFailures();
  const UserRow* found = FindUserByName(name);
  bool may = found && !found->disabled_at;
  std::string hash = may ? found->password_hash : "";
  // SECURITY: an unknown name costs as much time as a known one.
  CO_TRY_ASSIGN(bool right, co_await hasher_.Verify(hash, std::move(password)));
  found = FindUserByName(name);
  // It may have been changed meanwhile, which ended all logins but this one.
  if (!right || !found || found->disabled_at || found->password_hash != hash) {
    failures_.Add(ByAddress(address));
    failures_.Add(ByName(name));
    co_return Fail(Code::kUnauthenticated, "the name or the password is wrong");
  }
  failures_.Clear(ByName(name));
  co_return co_await OpenLogin(*found, /*key_hash=*/"");
}

Task<Result<LoginTokens>> Accounts::LoginByKey(std::string key, std::string address) {
  if (LoginWait("", address).count() > 0) co_return TooManyFailures();
  auto identity = ByKey(key);
  const UserRow* found = identity ? FindUser(identity->user_id) : nullptr;
  if (!found || found->disabled_at) {
    failures_.Add(ByAddress(address));
    co_return Fail(Code::kUnauthenticated, "the API key is not valid");
  }
  co_return co_await OpenLogin(*found, HashOf(key));
}

Task<Result<LoginTokens>> Accounts::OpenLogin(UserRow user, std::string key_hash) {
  LoginRow login{
      .id = RandomUuid(), .user_id = user.id, .key_hash = std::move(key_hash), .created_at = Now()};
  std::string refresh = NewRefresh(login.id);
  login.refresh_hash = HashOf(refresh);
  login.expires_at = Now() + std::chrono::days(config_.login_refresh_days);
  CO_TRY_ASSIGN(login, co_await store_.Write([login](Transaction& tx) -> Result<LoginRow> {
    // Those that are over are of no use to anybody.
    TRY(tx.Delete(Select<LoginRow>().Less(&LoginRow::expires_at, Now())));
    TRY(tx.Insert(login));
    return login;
  }));
  co_return TokensFor(user, login.id, std::move(refresh));
}

Task<Result<LoginTokens>> Accounts::Refresh(std::string refresh_token) {
  std::string next = NewRefresh(LoginOf(refresh_token));
  Time until = Now() + std::chrono::days(config_.login_refresh_days);
  struct Outcome {
    std::string user_id;
    bool reused = false;
  };
  auto outcome = co_await store_.Write(
      [old = std::move(refresh_token), next, until](Transaction& tx) -> Result<Outcome> {
        TRY_ASSIGN(auto login, tx.Get<LoginRow>(LoginOf(old)));
        if (!login || login->ended_at || login->expires_at <= Now()) return Unauthenticated();
        Outcome done{login->user_id, !ConstantTimeEqual(login->refresh_hash, HashOf(old))};
        if (done.reused) {
          login->ended_at = Now();
        } else {
          login->refresh_hash = HashOf(next);
          login->expires_at = until;
        }
        TRY(tx.Update(*login));
        return done;
      });
  if (!outcome) co_return tl::unexpected(outcome.error());
  std::string login_id = LoginOf(next);
  // SECURITY: two have had this token. Which of them is the thief nobody knows, so both are out.
  if (outcome->reused) RememberEnded(login_id, Now());
  const UserRow* user = FindUser(outcome->user_id);
  if (outcome->reused || !user || user->disabled_at) co_return Unauthenticated();
  co_return TokensFor(*user, login_id, std::move(next));
}

Task<Status> Accounts::Logout(std::string login_id) {
  auto ended = co_await store_.Write([login_id](Transaction& tx) {
    return tx.Set(Select<LoginRow>().Eq(&LoginRow::id, login_id).IsNull(&LoginRow::ended_at),
                  {store::Assign(&LoginRow::ended_at, Now())});
  });
  if (!ended) co_return tl::unexpected(ended.error());
  RememberEnded(login_id, Now());
  co_return Status();
}

Task<Status> Accounts::EndLoginsOfLostKeys() {
  CO_TRY_ASSIGN(auto open, co_await store_.Read([](Transaction& tx) {
    return tx.List(Select<LoginRow>().NotEq(&LoginRow::key_hash, "").IsNull(&LoginRow::ended_at));
  }));
  for (const LoginRow& login : open)
    if (!keys_.Holds(login.key_hash)) CO_TRY(co_await Logout(login.id));
  co_return Status();
}

Task<Status> Accounts::EndLogins(std::string user_id) {
  auto ended = co_await store_.Write([user_id](Transaction& tx) -> Result<std::vector<LoginRow>> {
    auto open = Select<LoginRow>().Eq(&LoginRow::user_id, user_id).IsNull(&LoginRow::ended_at);
    TRY_ASSIGN(auto logins, tx.List(open));
    TRY(tx.Set(open, {store::Assign(&LoginRow::ended_at, Now())}));
    return logins;
  });
  if (!ended) co_return tl::unexpected(ended.error());
  for (const LoginRow& login : *ended) RememberEnded(login.id, Now());
  co_return Status();
}

void Accounts::RememberEnded(const std::string& login_id, Time at) {
  Time since = Now() - std::chrono::minutes(config_.login_access_minutes);
  std::erase_if(ended_, [since](const auto& entry) { return entry.second < since; });
  ended_[login_id] = at;
}

}  // namespace caisson::account
