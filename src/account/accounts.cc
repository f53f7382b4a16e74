#include "account/accounts.h"

#include <algorithm>

#include "account/token.h"
#include "base/encoding.h"
#include "base/id.h"
#include "base/log.h"

namespace caisson::account {
namespace {

using store::ApiKey;
using store::Select;
using store::Transaction;
using store::UserRow;

constexpr size_t kMaxName = 64;

Status CheckRole(const std::string& role) {
  if (std::ranges::find(kRoles, role) != std::end(kRoles)) return {};
  return Fail(Code::kInvalidArgument, "'{}' is no role: use admin, member or viewer", role);
}

// Users of keys that were made when there were no users. They own what was made with these keys.
Status AddMissingUsers(Transaction& tx, const std::vector<ApiKey>& keys) {
  auto add = [&tx](const std::string& id, const std::string& name,
                   const std::string& role) -> Status {
    TRY_ASSIGN(auto known, tx.Get<UserRow>(id));
    if (known) return {};
    TRY_ASSIGN(auto taken, tx.Count(Select<UserRow>().Eq(&UserRow::name, name)));
    return tx.Insert(UserRow{.id = id,
                             .name = taken || name.empty() ? fmt::format("{}-{}", name, id) : name,
                             .role = role,
                             .created_at = Now()});
  };
  TRY(add(std::string(kAdminId), std::string(kAdminId), "admin"));
  for (const ApiKey& key : keys) TRY(add(UserOf(key), key.name, "member"));
  return {};
}

Status ApplyLimits(const Accounts::Limits& wanted, const std::string& user_id,
                   store::KeyLimits& limits) {
  // Limits hold for a user: one on a key of the admin would bind the server's first key as well.
  if (user_id == kAdminId && !wanted.empty())
    return Fail(Code::kFailedPrecondition, "keys of the user admin have the server's limits");
  for (const auto& [name, value] : wanted) {
    auto known = std::ranges::find(store::kKeyLimits, name, &store::NamedKeyLimit::name);
    if (known == store::kKeyLimits.end())
      return Fail(Code::kInvalidArgument, "there is no limit '{}' of a key", name);
    limits.*known->field = value;
  }
  return {};
}

}  // namespace

Accounts::Accounts(asio::any_io_executor executor, store::Store& store, KeyRing& keys,
                   std::string secret, const Config& config)
    : store_(store),
      keys_(keys),
      secret_(std::move(secret)),
      config_(config),
      tasks_(std::move(executor)),
      failures_(config.login_failures_per_minute) {
  keys_.OnUse([this](const std::string& key_id) { tasks_.Spawn("key use", NoteUse(key_id)); });
}

Accounts::~Accounts() { keys_.OnUse({}); }

Task<Status> Accounts::Start() {
  CO_TRY_ASSIGN(auto keys, co_await store_.ListApiKeys());
  CO_TRY_ASSIGN(bool done, co_await store_.Write([keys](Transaction& tx) -> Result<bool> {
    TRY(AddMissingUsers(tx, keys));
    return true;
  }));
  (void)done;
  CO_TRY(co_await ReadUsers());
  CO_TRY(co_await keys_.Load(store_));
  // SECURITY: a restart must not make access tokens of ended logins good again.
  Time since = Now() - std::chrono::minutes(config_.login_access_minutes);
  CO_TRY_ASSIGN(auto ended, co_await store_.Read([since](Transaction& tx) {
    return tx.List(Select<store::LoginRow>().Greater(&store::LoginRow::ended_at, since));
  }));
  for (const store::LoginRow& login : ended) RememberEnded(login.id, *login.ended_at);
  // The server's own key may be another one than before.
  co_return co_await EndLoginsOfLostKeys();
}

Task<void> Accounts::Stop() {
  if (!co_await tasks_.Stop()) LogWarn("writing down the use of keys took too long");
}

Task<Status> Accounts::ReadUsers() {
  CO_TRY_ASSIGN(auto users,
                co_await store_.Read([](Transaction& tx) { return tx.List(Select<UserRow>()); }));
  users_.clear();
  for (UserRow& user : users) users_.emplace(user.id, std::move(user));
  co_return Status();
}

Task<Status> Accounts::ReadKeys() {
  CO_TRY(co_await keys_.Load(store_));
  CO_TRY(co_await EndLoginsOfLostKeys());
  if (keys_changed_) CO_TRY(co_await keys_changed_());
  co_return Status();
}

Task<void> Accounts::NoteUse(std::string key_id) {
  auto noted = co_await store_.Write([key_id](Transaction& tx) {
    return tx.Set(Select<store::KeyUseRow>().Eq(&store::KeyUseRow::id, key_id),
                  {store::Assign(&store::KeyUseRow::last_used_at, Now())});
  });
  if (!noted)
    LogWarn("the use of a key was not written down", {{"error", noted.error().message()}});
}

// ---- who is it --------------------------------------------------------------------------------

std::optional<Identity> Accounts::ByKey(std::string_view key) const {
  auto holder = keys_.Check(key);
  if (!holder) return std::nullopt;
  return Identity{.user_id = holder->user_id, .key_id = holder->key_id, .role = holder->role};
}

bool Accounts::StillIs(const Identity& who) const {
  const store::UserRow* user = FindUser(who.user_id);
  if (!user || user->disabled_at || user->role != who.role) return false;
  return who.login_id.empty() ? keys_.HasKey(who.key_id) : !ended_.contains(who.login_id);
}

std::optional<Identity> Accounts::ByAccessToken(std::string_view token) const {
  auto claims = VerifyAccess(secret_, token, Now());
  if (!claims || ended_.contains(claims->login_id)) return std::nullopt;
  const UserRow* user = FindUser(claims->user_id);
  if (!user || user->disabled_at) return std::nullopt;
  return Identity{.user_id = user->id, .login_id = claims->login_id, .role = user->role};
}

bool Accounts::Opens(std::string_view text) const {
  return keys_.Holds(HexEncode(Sha256(text))) || ByAccessToken(text);
}

std::string Accounts::CsrfOf(std::string_view login_id) const {
  return CsrfToken(secret_, login_id);
}

std::string Accounts::Fingerprint(std::string_view text) const {
  return HexEncode(HmacSha256(secret_, fmt::format("fingerprint:{}", text)));
}

// ---- users ------------------------------------------------------------------------------------

Task<Result<UserRow>> Accounts::AddUser(NewUser wanted) {
  CO_TRY(CheckRole(wanted.role));
  if (wanted.name.empty() || wanted.name.size() > kMaxName)
    co_return Fail(Code::kInvalidArgument, "a user's name has 1 to {} characters", kMaxName);
  UserRow user{.id = RandomUuid(), .name = wanted.name, .role = wanted.role, .created_at = Now()};
  if (!wanted.password.empty()) {
    CO_TRY_ASSIGN(user.password_hash, co_await hasher_.Hash(std::move(wanted.password)));
  }
  auto added = co_await store_.Write([user](Transaction& tx) -> Result<UserRow> {
    TRY(tx.Insert(user));
    return user;
  });
  if (!added && added.error().code() == Code::kAlreadyExists)
    co_return Fail(Code::kAlreadyExists, "there is a user '{}' already", user.name);
  CO_TRY_ASSIGN(UserRow row, std::move(added));
  users_[row.id] = row;
  co_return row;
}

std::vector<UserRow> Accounts::ListUsers() const {
  std::vector<UserRow> list;
  for (const auto& [id, user] : users_) list.push_back(user);
  std::ranges::sort(list, {}, &UserRow::name);
  return list;
}

const UserRow* Accounts::FindUser(std::string_view id) const {
  auto it = users_.find(id);
  return it == users_.end() ? nullptr : &it->second;
}

const UserRow* Accounts::FindUserByName(std::string_view name) const {
  for (const auto& [id, user] : users_)
    if (user.name == name) return &user;
  return nullptr;
}

Task<Result<UserRow>> Accounts::ChangeUser(std::string id, UserChange change) {
  const UserRow* known = FindUser(id);
  if (!known) co_return Fail(Code::kNotFound, "there is no user {}", id);
  UserRow user = *known;
  // SECURITY: whoever holds the server's first key could undo it anyway; this way nobody locks
  // everybody out by mistake.
  if (id == kAdminId &&
      (change.disabled.value_or(false) || change.role.value_or("admin") != "admin"))
    co_return Fail(Code::kFailedPrecondition, "the user admin keeps its role and its access");
  if (change.role) {
    CO_TRY(CheckRole(*change.role));
    user.role = *change.role;
  }
  if (change.password) {
    CO_TRY_ASSIGN(user.password_hash, co_await hasher_.Hash(*change.password));
  }
  if (change.disabled)
    user.disabled_at =
        *change.disabled ? std::optional(user.disabled_at.value_or(Now())) : std::nullopt;
  CO_TRY_ASSIGN(user, co_await store_.Write([user](Transaction& tx) -> Result<UserRow> {
    TRY(tx.Update(user));
    return user;
  }));
  users_[id] = user;
  if (change.password || user.disabled_at) CO_TRY(co_await EndLogins(id));
  CO_TRY(co_await ReadKeys());
  co_return user;
}

Task<Result<bool>> Accounts::CheckPassword(std::string user_id, std::string password) {
  const UserRow* user = FindUser(user_id);
  std::string subject = "user:" + user_id;
  if (failures_.Wait(subject).count() > 0)
    co_return Fail(Code::kResourceExhausted, "too many wrong passwords: wait before the next one");
  CO_TRY_ASSIGN(bool right,
                co_await hasher_.Verify(user ? user->password_hash : "", std::move(password)));
  if (right)
    failures_.Clear(subject);
  else
    failures_.Add(subject);
  co_return right;
}

// ---- keys -------------------------------------------------------------------------------------

Task<Result<NewKey>> Accounts::AddKey(std::string name, std::string user_id, Limits limits) {
  NewKey made = MakeApiKey(std::move(name));
  made.row.user_id = user_id.empty() ? made.row.id : user_id;
  CO_TRY(ApplyLimits(limits, made.row.user_id, made.row.limits));
  if (!user_id.empty() && !FindUser(user_id))
    co_return Fail(Code::kNotFound, "there is no user {}", user_id);
  CO_TRY(co_await store_.AddApiKey(made.row));
  if (user_id.empty()) {
    CO_TRY_ASSIGN(bool done,
                  co_await store_.Write([key = made.row](Transaction& tx) -> Result<bool> {
                    TRY(AddMissingUsers(tx, {key}));
                    return true;
                  }));
    (void)done;
    CO_TRY(co_await ReadUsers());
  }
  CO_TRY(co_await ReadKeys());
  co_return made;
}

Task<Result<std::vector<ApiKey>>> Accounts::ListKeys(std::string user_id) {
  CO_TRY_ASSIGN(auto keys, co_await store_.ListApiKeys());
  if (!user_id.empty())
    std::erase_if(keys, [&](const ApiKey& key) { return UserOf(key) != user_id; });
  co_return keys;
}

Task<Result<ApiKey>> Accounts::ChangeKey(std::string user_id, std::string id, KeyChange change) {
  CO_TRY_ASSIGN(auto keys, co_await ListKeys(user_id));
  auto key = std::ranges::find(keys, id, &ApiKey::id);
  if (key == keys.end()) co_return Fail(Code::kNotFound, "there is no API key {}", id);
  if (change.name) key->name = *change.name;
  CO_TRY(ApplyLimits(change.limits, UserOf(*key), key->limits));
  if (change.revoke && !key->revoked_at) key->revoked_at = Now();
  CO_TRY(co_await store_.UpdateApiKey(*key));
  CO_TRY(co_await ReadKeys());
  co_return std::move(*key);
}

}  // namespace caisson::account
