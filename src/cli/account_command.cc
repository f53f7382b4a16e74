#include "cli/account_command.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <cstdio>

#include "base/encoding.h"
#include "base/text.h"
#include "cli/api_client.h"
#include "cli/secret_input.h"
#include "cli/table.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

std::string Text(const json::value& object, std::string_view name) {
  const json::value* value = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return value && value->is_string() ? Printable(std::string(value->as_string())) : std::string();
}

json::array List(const json::value& object, std::string_view name) {
  const json::value* value = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return value && value->is_array() ? value->as_array() : json::array();
}

// null is the server's own.
Result<json::object> LimitsOf(const StringMap& wanted) {
  json::object limits;
  for (const auto& [name, text] : wanted) {
    auto number = ParseInt<int64_t>(text);
    if (!number && text != "default")
      return Fail(Code::kInvalidArgument, "{}: '{}' is neither a number nor \"default\"", name,
                  text);
    limits[name] = number ? json::value(*number) : json::value(nullptr);
  }
  return limits;
}

std::string LimitsText(const json::value& key) {
  std::string text;
  const json::value* limits = key.as_object().if_contains("limits");
  if (limits && limits->is_object())
    for (const auto& [name, value] : limits->as_object())
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", std::string_view(name),
                          json::serialize(value));
  return text;
}

constexpr const char* kTokenPath = "/api/v1/auth/github-token";

std::string TokenText(const json::value& token) {
  std::string login = Text(token, "login"), identity = Text(token, "identity");
  std::string used =
      identity == "user" ? "" : fmt::format(" (not used: pull_request_identity is {})", identity);
  return login.empty() ? "no token" + used : "a token of " + login + used;
}

class Runner {
 public:
  Runner(ApiClient& client, const ServerAccess& server, bool as_json)
      : client_(client), server_(server), json_(as_json) {}

  Task<Result<int>> Run(AddKey add) {
    json::object body{{"name", add.name}};
    CO_TRY_ASSIGN(json::object limits, LimitsOf(add.limits));
    if (!limits.empty()) body["limits"] = std::move(limits);
    if (!add.user.empty()) {
      CO_TRY_ASSIGN(std::string id, co_await FindUser(add.user));
      body["user_id"] = id;
    } else if (!add.mine) {
      body["own_user"] = true;
    }
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", "/api/v1/keys", body));
    co_return Show(answer.body, Text(answer.body, "key"));
  }

  Task<Result<int>> Run(ListKeys) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/keys?all=true"));
    json::array keys = List(answer.body, "keys");
    std::vector<std::vector<std::string>> rows;
    for (const json::value& key : keys)
      rows.push_back({Text(key, "id"), Text(key, "name"), Text(key, "hint"), Text(key, "user_id"),
                      Text(key, "created_at"), Text(key, "last_used_at"),
                      Text(key, "revoked_at").empty() ? "valid" : "revoked", LimitsText(key)});
    co_return ShowTable(keys, {"ID", "NAME", "KEY", "USER", "MADE", "LAST USED", "STATE", "LIMITS"},
                        rows);
  }

  Task<Result<int>> Run(LimitKey limit) {
    CO_TRY_ASSIGN(json::object limits, LimitsOf(limit.limits));
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("PATCH", KeyPath(limit.id),
                                                     json::object{{"limits", std::move(limits)}}));
    co_return Show(answer.body, LimitsText(answer.body));
  }

  Task<Result<int>> Run(RevokeKey revoke) {
    CO_TRY(co_await client_.Call("DELETE", KeyPath(revoke.id)));
    co_return 0;
  }

  Task<Result<int>> Run(AddUser add) {
    json::object body{{"name", add.name}, {"role", add.role}};
    if (add.password) {
      CO_TRY_ASSIGN(std::string password, ReadSecret("Password of " + add.name));
      body["password"] = password;
    }
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("POST", "/api/v1/users", body));
    co_return Show(answer.body, Text(answer.body, "id"));
  }

  Task<Result<int>> Run(ListUsers) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/users"));
    json::array users = List(answer.body, "users");
    std::vector<std::vector<std::string>> rows;
    for (const json::value& user : users)
      rows.push_back({Text(user, "id"), Text(user, "name"), Text(user, "role"),
                      Text(user, "created_at"),
                      Text(user, "disabled_at").empty() ? "active" : "disabled"});
    co_return ShowTable(users, {"ID", "NAME", "ROLE", "MADE", "STATE"}, rows);
  }

  Task<Result<int>> Run(SetUserPassword set) {
    CO_TRY_ASSIGN(std::string password, ReadSecret("New password of " + set.user));
    co_return co_await Change(set.user, {{"password", password}});
  }
  Task<Result<int>> Run(SetUserRole set) { return Change(set.user, {{"role", set.role}}); }
  Task<Result<int>> Run(DisableUser set) { return Change(set.user, {{"disabled", set.disabled}}); }

  Task<Result<int>> Run(SetGithubToken) {
    CO_TRY_ASSIGN(std::string token, ReadSecret("GitHub token"));
    CO_TRY_ASSIGN(auto answer,
                  co_await client_.Call("PUT", kTokenPath, json::object{{"token", token}}));
    co_return Show(answer.body, TokenText(answer.body));
  }
  Task<Result<int>> Run(ShowGithubToken) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", kTokenPath));
    co_return Show(answer.body, TokenText(answer.body));
  }
  Task<Result<int>> Run(DeleteGithubToken) {
    CO_TRY(co_await client_.Call("DELETE", kTokenPath));
    co_return 0;
  }

  Task<Result<int>> Run(LogIn login) {
    CO_TRY_ASSIGN(std::string key, ReadSecret("API key for " + server_.url));
    ServerAccess access = server_;
    access.api_key = key;
    CO_TRY_ASSIGN(ApiClient client, ApiClient::Make(access));
    CO_TRY_ASSIGN(auto answer, co_await client.Call("GET", "/api/v1/auth/me"));
    CO_TRY(StoreLogin(login.file, access.url, key));
    const json::value* user =
        answer.body.is_object() ? answer.body.as_object().if_contains("user") : nullptr;
    co_return Show(answer.body, fmt::format("logged in to {} as {}", access.url,
                                            user ? Text(*user, "name") : ""));
  }

 private:
  static std::string KeyPath(const std::string& id) { return "/api/v1/keys/" + PercentEncode(id); }

  // A user by name or by id.
  Task<Result<std::string>> FindUser(std::string user) {
    CO_TRY_ASSIGN(auto answer, co_await client_.Call("GET", "/api/v1/users"));
    for (const json::value& one : List(answer.body, "users"))
      if (Text(one, "name") == user || Text(one, "id") == user) co_return Text(one, "id");
    co_return Fail(Code::kNotFound, "there is no user '{}'", user);
  }

  Task<Result<int>> Change(std::string user, json::object change) {
    CO_TRY_ASSIGN(std::string id, co_await FindUser(user));
    CO_TRY_ASSIGN(auto answer,
                  co_await client_.Call("PATCH", "/api/v1/users/" + PercentEncode(id), change));
    co_return Show(answer.body, "");
  }

  int Show(const json::value& answer, const std::string& text) const {
    if (json_)
      fmt::print("{}\n", json::serialize(answer));
    else if (!text.empty())
      fmt::print("{}\n", text);
    return 0;
  }
  int ShowTable(const json::array& answer, const std::vector<std::string>& head,
                const std::vector<std::vector<std::string>>& rows) const {
    if (json_)
      fmt::print("{}\n", json::serialize(answer));
    else
      fmt::print("{}", FormatTable(head, rows));
    return 0;
  }

  ApiClient& client_;
  const ServerAccess& server_;
  bool json_;
};

Task<void> RunAction(ApiClient& client, const AccountCommand& command, Result<int>& result) {
  Runner runner(client, command.server, command.json);
  result =
      co_await std::visit([&](const auto& action) { return runner.Run(action); }, command.action);
}

Result<int> RunOrFail(const AccountCommand& command) {
  asio::io_context loop(1);  // the client's connection is part of it
  TRY_ASSIGN(ApiClient client, ApiClient::Make(command.server));
  Result<int> result = 0;
  bool done = false;
  asio::co_spawn(loop, RunAction(client, command, result), [&](std::exception_ptr thrown) {
    if (thrown) result = Fail(Code::kInternal, "this command failed in an unexpected way");
    done = true;
  });
  while (!done) loop.run_one();
  return result;
}

}  // namespace

int RunAccountCommand(const AccountCommand& command) {
  auto status = RunOrFail(command);
  if (status) return *status;
  fmt::print(stderr, "caisson: {}\n", Printable(status.error().message()));
  return 1;
}

}  // namespace caisson::cli
