// Who uses the server: users, their keys and their logins. Every user and every change is in the
// store; what a request has to be checked against is in memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "account/failure_limit.h"
#include "account/key_ring.h"
#include "account/password.h"
#include "base/async.h"
#include "base/config.h"
#include "store/account_rows.h"
#include "store/store.h"

namespace caisson::account {

// The roles, weakest first: reads only its own; has things of its own; may everything.
inline constexpr std::string_view kRoles[] = {"viewer", "member", "admin"};

// Who sent a request.
struct Identity {
  std::string user_id;
  std::string key_id;    // "" if it was a login
  std::string login_id;  // "" if it was a key
  std::string role;
};

// What a login gives to the page.
struct LoginTokens {
  store::UserRow user;
  std::string access;
  std::string refresh;
  std::string csrf;
};

class Accounts {
 public:
  // All of these outlive it. `secret` is the server's.
  Accounts(asio::any_io_executor executor, store::Store& store, KeyRing& keys, std::string secret,
           const Config& config);
  ~Accounts();

  // Makes the user "admin" and the users of keys that have none, and reads everything.
  Task<Status> Start();
  Task<void> Stop();
  // Called after keys or their limits have changed.
  void OnKeysChanged(std::function<Task<Status>()> changed) { keys_changed_ = std::move(changed); }

  // ---- who is it -------------------------------------------------------------------
  std::optional<Identity> ByKey(std::string_view key) const;
  std::optional<Identity> ByAccessToken(std::string_view token) const;
  // Whether somebody could come in with it, as a key or as an access token.
  bool Opens(std::string_view text) const;
  // Whether they could still come in as the one they were then: for what stays open for long.
  bool StillIs(const Identity& who) const;
  // The value that X-CSRF-Token must have for this login.
  std::string CsrfOf(std::string_view login_id) const;
  // Recognises a text without telling anything about it to who sees the store.
  std::string Fingerprint(std::string_view text) const;

  // ---- users -----------------------------------------------------------------------
  struct NewUser {
    std::string name;
    std::string role = "member";
    std::string password;  // "" = none: no login, only keys
  };
  // kAlreadyExists if the name is taken.
  Task<Result<store::UserRow>> AddUser(NewUser user);
  std::vector<store::UserRow> ListUsers() const;              // by name
  const store::UserRow* FindUser(std::string_view id) const;  // valid until the next co_await
  const store::UserRow* FindUserByName(std::string_view name) const;
  struct UserChange {
    std::optional<std::string> role;
    std::optional<bool> disabled;
    std::optional<std::string> password;
  };
  // A new password and disabling end all logins. The user "admin" keeps role and access
  // (kFailedPrecondition). kNotFound if there is no such user.
  Task<Result<store::UserRow>> ChangeUser(std::string id, UserChange change);
  // True if `password` is the user's; limited like Login().
  Task<Result<bool>> CheckPassword(std::string user_id, std::string password);

  // ---- keys ------------------------------------------------------------------------
  // Limits by the names of store::kKeyLimits; without a value it is the server's.
  using Limits = std::map<std::string, std::optional<int64_t>>;
  // `user_id` "": a user of its own is made with it, a member.
  Task<Result<NewKey>> AddKey(std::string name, std::string user_id, Limits limits);
  // Of all users if `user_id` is "".
  Task<Result<std::vector<store::ApiKey>>> ListKeys(std::string user_id);
  struct KeyChange {
    std::optional<std::string> name;
    Limits limits = {};  // those that change
    bool revoke = false;
  };
  // kNotFound unless it is a key of this user, or `user_id` is "".
  Task<Result<store::ApiKey>> ChangeKey(std::string user_id, std::string id, KeyChange change);

  // ---- logins ----------------------------------------------------------------------
  // kUnauthenticated for a wrong name or password, told alike; kResourceExhausted after too many.
  Task<Result<LoginTokens>> Login(std::string name, std::string password, std::string address);
  // The same for who has an API key. The login ends when the key does.
  Task<Result<LoginTokens>> LoginByKey(std::string key, std::string address);
  // Of somebody whom another service knows: `identity` is theirs for ever ("github:17"), `login`
  // their name there. The first time a user is made, a member without a password; never one that is
  // there already. kPermissionDenied if it is disabled.
  Task<Result<LoginTokens>> LoginBy(std::string identity, std::string login);
  // How long somebody who was refused for too many failures has to wait.
  std::chrono::seconds LoginWait(const std::string& name, const std::string& address) const;
  // New tokens for a refresh token, which is used up by this. One that was used before ends the
  // login: somebody else has it.
  Task<Result<LoginTokens>> Refresh(std::string refresh_token);
  Task<Status> Logout(std::string login_id);
  // The login that a refresh token names, whether it is valid or not.
  static std::string LoginOf(std::string_view refresh_token);

 private:
  Task<Status> ReadUsers();
  Task<Status> ReadKeys();
  Task<Status> EndLogins(std::string user_id);
  // Those of keys that open nothing any more.
  Task<Status> EndLoginsOfLostKeys();
  // Writes down a login of this user; `key_hash` of the key that it was made with, or "".
  Task<Result<LoginTokens>> OpenLogin(store::UserRow user, std::string key_hash);
  Task<void> NoteUse(std::string key_id);
  LoginTokens TokensFor(const store::UserRow& user, const std::string& login_id,
                        std::string refresh) const;
  void RememberEnded(const std::string& login_id, Time at);

  store::Store& store_;
  KeyRing& keys_;
  const std::string secret_;
  const Config& config_;
  PasswordHasher hasher_;
  TaskGroup tasks_;
  FailureLimit failures_;
  std::function<Task<Status>()> keys_changed_;
  std::map<std::string, store::UserRow, std::less<>> users_;
  // Logins that ended while access tokens of theirs may still be around, and when.
  std::map<std::string, Time, std::less<>> ended_;
};

}  // namespace caisson::account
