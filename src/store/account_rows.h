// People and what they did.
#pragma once

#include "store/table.h"

namespace caisson::store {

// Everything has an owner: the id of a user. The first key of the server belongs to the user
// "admin", whose sandboxes have that key id; a key made without a user is a user of its own.
struct UserRow {
  std::string id;
  std::string name;           // what they log in with; unique
  std::string role;           // "admin", "member", "viewer"
  std::string password_hash;  // argon2id in its usual text form; "" = no login by password
  Time created_at;
  std::optional<Time> disabled_at;
  std::string tier;  // of their builds; "" = the setting build_tier

  static constexpr auto kTable =
      MakeTable("users", Column{"id", &UserRow::id}, Column{"name", &UserRow::name},
                Column{"role", &UserRow::role}, Column{"password_hash", &UserRow::password_hash},
                Column{"created_at", &UserRow::created_at},
                Column{"disabled_at", &UserRow::disabled_at}, Column{"tier", &UserRow::tier});
};

// When a key was last used; the rest of its row is store::ApiKey.
struct KeyUseRow {
  std::string id;
  std::optional<Time> last_used_at;

  static constexpr auto kTable = MakeTable("api_keys", Column{"id", &KeyUseRow::id},
                                           Column{"last_used_at", &KeyUseRow::last_used_at});
};

// A login of the page. The refresh token is known by its hash and replaced at every use.
struct LoginRow {
  std::string id;
  std::string user_id;
  std::string refresh_hash;  // SHA-256, hex
  std::string key_hash;      // the same of the API key it was made with, "" = a password
  Time created_at;
  Time expires_at;
  std::optional<Time> ended_at;

  static constexpr auto kTable = MakeTable(
      "logins", Column{"id", &LoginRow::id}, Column{"user_id", &LoginRow::user_id},
      Column{"refresh_hash", &LoginRow::refresh_hash}, Column{"key_hash", &LoginRow::key_hash},
      Column{"created_at", &LoginRow::created_at}, Column{"expires_at", &LoginRow::expires_at},
      Column{"ended_at", &LoginRow::ended_at});
};

// One state-changing call. Append-only.
struct AuditRow {
  int64_t id = 0;
  Time at;
  std::string actor_id;  // a user; "" = nobody who is known (a failed login, a webhook)
  std::string key_id;    // the API key, "" for a login or none
  std::string action;    // "POST /api/v1/tasks"
  std::string target;    // the id of what was changed, "" if none
  int64_t status = 0;    // of the answer
  std::string request_id;
  std::string address;

  static constexpr auto kTable =
      MakeTable("audit_log", Column{"id", &AuditRow::id}, Column{"at", &AuditRow::at},
                Column{"actor_id", &AuditRow::actor_id}, Column{"key_id", &AuditRow::key_id},
                Column{"action", &AuditRow::action}, Column{"target", &AuditRow::target},
                Column{"status", &AuditRow::status}, Column{"request_id", &AuditRow::request_id},
                Column{"address", &AuditRow::address});
};

// The answer to a POST with an Idempotency-Key, kept to be given again.
struct IdempotencyRow {
  std::string id;  // user, key and route in one text
  std::string request_hash;
  int64_t status = 0;  // 0: the first request is still at work
  std::string body;
  Time created_at;

  static constexpr auto kTable =
      MakeTable("idempotency", Column{"id", &IdempotencyRow::id},
                Column{"request_hash", &IdempotencyRow::request_hash},
                Column{"status", &IdempotencyRow::status}, Column{"body", &IdempotencyRow::body},
                Column{"created_at", &IdempotencyRow::created_at});
};

}  // namespace caisson::store
