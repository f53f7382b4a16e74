#include "api/account_routes.h"

#include <boost/json.hpp>

#include "api/account_codec.h"
#include "api/fields.h"

namespace caisson::api {
namespace {

using account::Accounts;

constexpr std::string_view kUserSchema = R"({
  "type": "object", "required": ["id", "name", "role", "has_password", "created_at", "disabled_at"],
  "properties": {
    "id": {"type": "string"}, "name": {"type": "string"},
    "role": {"enum": ["admin", "member", "viewer"]},
    "has_password": {"type": "boolean", "description": "can log in; keys work without"},
    "created_at": {"type": "string", "format": "date-time"},
    "disabled_at": {"type": ["string", "null"], "format": "date-time"}}})";
constexpr std::string_view kUsersSchema = R"({
  "type": "object", "required": ["users"],
  "properties": {"users": {"type": "array", "items": {"$ref": "#/components/schemas/User"}}}})";
constexpr std::string_view kNewUserSchema = R"({
  "type": "object", "required": ["name"],
  "properties": {
    "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"},
    "role": {"enum": ["admin", "member", "viewer"], "default": "member"},
    "password": {"type": "string", "minLength": 10, "maxLength": 1000,
                 "description": "none: no login, only keys"}}})";
constexpr std::string_view kUserChangeSchema = R"({
  "type": "object", "minProperties": 1,
  "properties": {
    "role": {"enum": ["admin", "member", "viewer"]},
    "disabled": {"type": "boolean", "description": "ends all logins, keys are refused"},
    "password": {"type": "string", "minLength": 10, "maxLength": 1000}}})";
constexpr std::string_view kKeyLimitsSchema = R"({
  "type": "object",
  "description": "instead of the server's settings; 0 is no limit",
  "properties": {
    "rate_limit": {"type": ["integer", "null"], "minimum": 0},
    "rate_burst": {"type": ["integer", "null"], "minimum": 0},
    "create_rate_limit": {"type": ["integer", "null"], "minimum": 0},
    "max_sandboxes": {"type": ["integer", "null"], "minimum": 0,
                      "description": "running at once"},
    "max_sandbox_cpus": {"type": ["integer", "null"], "minimum": 0},
    "max_sandbox_memory_mb": {"type": ["integer", "null"], "minimum": 0},
    "max_sandbox_disk_mb": {"type": ["integer", "null"], "minimum": 0},
    "max_sandbox_pids": {"type": ["integer", "null"], "minimum": 0},
    "max_sandbox_open_files": {"type": ["integer", "null"], "minimum": 0},
    "max_sandbox_output_kbps": {"type": ["integer", "null"], "minimum": 0},
    "max_timeout_s": {"type": ["integer", "null"], "minimum": 0}}})";
// The text of a key is in it once: when it is made.
constexpr std::string_view kKeySchema = R"({
  "type": "object",
  "required": ["id", "name", "hint", "user_id", "created_at", "last_used_at", "revoked_at",
               "limits"],
  "properties": {
    "id": {"type": "string"}, "name": {"type": "string"},
    "hint": {"type": "string", "description": "its first characters"},
    "key": {"type": "string", "description": "the key itself, shown once: when it is made"},
    "user_id": {"type": "string"},
    "created_at": {"type": "string", "format": "date-time"},
    "last_used_at": {"type": ["string", "null"], "format": "date-time"},
    "revoked_at": {"type": ["string", "null"], "format": "date-time"},
    "limits": {"$ref": "#/components/schemas/KeyLimits"}}})";
constexpr std::string_view kKeysSchema = R"({
  "type": "object", "required": ["keys"],
  "properties": {"keys": {"type": "array", "items": {"$ref": "#/components/schemas/Key"}}}})";
constexpr std::string_view kNewKeySchema = R"({
  "type": "object", "required": ["name"],
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 100},
    "user_id": {"type": "string", "description": "whose; yours if absent. Only for admins."},
    "own_user": {"type": "boolean",
                 "description": "make a user (a member) for it. Only for admins."},
    "limits": {"$ref": "#/components/schemas/KeyLimits"}}})";
constexpr std::string_view kKeyChangeSchema = R"({
  "type": "object", "minProperties": 1,
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 100},
    "limits": {"$ref": "#/components/schemas/KeyLimits"}}})";

std::map<std::string, std::optional<int64_t>> LimitsField(const json::object& body) {
  std::map<std::string, std::optional<int64_t>> limits;
  if (const json::value* field = Field(body, "limits"))
    for (const auto& [name, value] : field->as_object())
      limits[std::string(name)] = NumberField(field->as_object(), name);
  return limits;
}

// ---- users ------------------------------------------------------------------------------------

Answer ListUsers(Accounts& accounts) {
  json::array users;
  for (const store::UserRow& user : accounts.ListUsers()) users.push_back(EncodeUser(user));
  co_return http::Response::Json(200, json::object{{"users", std::move(users)}});
}

Answer AddUser(Accounts& accounts, Call& call) {
  CO_TRY_ASSIGN(auto user, co_await accounts.AddUser(
                               {.name = *TextField(call.body, "name"),
                                .role = TextField(call.body, "role").value_or("member"),
                                .password = TextField(call.body, "password").value_or("")}));
  call.target = user.id;
  co_return http::Response::Json(201, EncodeUser(user));
}

Answer GetUser(Accounts& accounts, Call& call) {
  const store::UserRow* user = accounts.FindUser(call.params.at("id"));
  if (!user) co_return Fail(Code::kNotFound, "there is no user {}", call.params.at("id"));
  co_return http::Response::Json(200, EncodeUser(*user));
}

Answer ChangeUser(Accounts& accounts, Call& call) {
  CO_TRY_ASSIGN(auto user,
                co_await accounts.ChangeUser(call.params.at("id"),
                                             {.role = TextField(call.body, "role"),
                                              .disabled = FlagField(call.body, "disabled"),
                                              .password = TextField(call.body, "password")}));
  co_return http::Response::Json(200, EncodeUser(user));
}

void AddUserRoutes(Frame& frame, Accounts& accounts) {
  frame.Add({.method = "GET",
             .pattern = "/api/v1/users",
             .tag = "accounts",
             .id = "listUsers",
             .summary = "All users, by name",
             .access = Access::kAdmin,
             .responses = {{200, "Users"}},
             .handler = [&accounts](Call&) { return ListUsers(accounts); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/users",
             .tag = "accounts",
             .id = "addUser",
             .summary = "Add a user",
             .access = Access::kAdmin,
             .request = "NewUser",
             .responses = {{201, "User"}},
             .handler = [&accounts](Call& call) { return AddUser(accounts, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/users/{id}",
             .tag = "accounts",
             .id = "getUser",
             .summary = "One user",
             .access = Access::kAdmin,
             .responses = {{200, "User"}},
             .handler = [&accounts](Call& call) { return GetUser(accounts, call); }});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/users/{id}",
             .tag = "accounts",
             .id = "changeUser",
             .summary = "Change role or password of a user, disable or enable them",
             .access = Access::kAdmin,
             .request = "UserChange",
             .responses = {{200, "User"}, {409, "Error"}},
             .handler = [&accounts](Call& call) { return ChangeUser(accounts, call); }});
}

// ---- keys -------------------------------------------------------------------------------------

Answer ListKeys(Accounts& accounts, Call& call) {
  CO_TRY_ASSIGN(auto list, co_await accounts.ListKeys(call.owner()));
  json::array keys;
  for (const store::ApiKey& key : list) keys.push_back(EncodeKey(key));
  co_return http::Response::Json(200, json::object{{"keys", std::move(keys)}});
}

Answer AddKey(Accounts& accounts, Call& call) {
  auto user_id = TextField(call.body, "user_id");
  bool own_user = FlagField(call.body, "own_user").value_or(false);
  auto limits = LimitsField(call.body);
  // SECURITY: with a key for somebody else one could act as them, and limits are not for those
  // whom they bind.
  if (!call.who.admin() &&
      ((user_id && *user_id != call.who.user_id) || own_user || !limits.empty()))
    co_return Fail(Code::kPermissionDenied,
                   "only an admin makes keys for others, or with limits of their own");
  if (user_id && own_user)
    co_return Fail(Code::kInvalidArgument, "say either user_id or own_user, not both");
  std::string owner = own_user ? "" : user_id.value_or(call.who.user_id);
  CO_TRY_ASSIGN(auto made,
                co_await accounts.AddKey(*TextField(call.body, "name"), owner, std::move(limits)));
  call.target = made.row.id;
  json::object shown = EncodeKey(made.row);
  shown["key"] = made.text;
  co_return http::Response::Json(201, shown);
}

// Whose keys this one may change.
std::string Reach(const Principal& who) { return who.admin() ? "" : who.user_id; }

Answer ChangeKey(Accounts& accounts, Call& call) {
  auto limits = LimitsField(call.body);
  if (!call.who.admin() && !limits.empty())
    co_return Fail(Code::kPermissionDenied, "only an admin changes limits of keys");
  CO_TRY_ASSIGN(auto key, co_await accounts.ChangeKey(
                              Reach(call.who), call.params.at("id"),
                              {.name = TextField(call.body, "name"), .limits = std::move(limits)}));
  co_return http::Response::Json(200, EncodeKey(key));
}

Answer RevokeKey(Accounts& accounts, Call& call) {
  CO_TRY(co_await accounts.ChangeKey(Reach(call.who), call.params.at("id"), {.revoke = true}));
  co_return http::Response::Empty(204);
}

void AddKeyRoutes(Frame& frame, Accounts& accounts) {
  frame.Add({.method = "GET",
             .pattern = "/api/v1/keys",
             .tag = "accounts",
             .id = "listKeys",
             .summary = "Your API keys, without their text",
             .access = Access::kViewer,
             .parameters = {kAllParameter},
             .responses = {{200, "Keys"}},
             .handler = [&accounts](Call& call) { return ListKeys(accounts, call); }});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/keys",
             .tag = "accounts",
             .id = "addKey",
             .summary = "Make an API key; its text is shown this once",
             .request = "NewKey",
             .secret = true,
             .responses = {{201, "Key"}, {404, "Error"}},
             .handler = [&accounts](Call& call) { return AddKey(accounts, call); }});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/keys/{id}",
             .tag = "accounts",
             .id = "changeKey",
             .summary = "Name a key, change its limits",
             .request = "KeyChange",
             .responses = {{200, "Key"}, {409, "Error"}},
             .handler = [&accounts](Call& call) { return ChangeKey(accounts, call); }});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/keys/{id}",
             .tag = "accounts",
             .id = "revokeKey",
             .summary = "Revoke a key: it is refused from now on",
             .responses = {{204, ""}},
             .handler = [&accounts](Call& call) { return RevokeKey(accounts, call); }});
}

}  // namespace

void AddAccountRoutes(Frame& frame, Accounts& accounts) {
  frame.AddSchema("User", kUserSchema);
  frame.AddSchema("Users", kUsersSchema);
  frame.AddSchema("NewUser", kNewUserSchema);
  frame.AddSchema("UserChange", kUserChangeSchema);
  frame.AddSchema("KeyLimits", kKeyLimitsSchema);
  frame.AddSchema("Key", kKeySchema);
  frame.AddSchema("Keys", kKeysSchema);
  frame.AddSchema("NewKey", kNewKeySchema);
  frame.AddSchema("KeyChange", kKeyChangeSchema);
  AddUserRoutes(frame, accounts);
  AddKeyRoutes(frame, accounts);
}

}  // namespace caisson::api
