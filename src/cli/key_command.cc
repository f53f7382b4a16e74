#include "cli/key_command.h"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <cstdio>

#include "base/text.h"
#include "cli/data_dir.h"
#include "cli/privileges.h"
#include "cli/table.h"
#include "sandbox/key_ring.h"
#include "store/store.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using store::KeyLimits;

Status ApplyLimits(const StringMap& wanted, KeyLimits& limits) {
  for (const auto& [name, text] : wanted) {
    auto known = std::find_if(store::kKeyLimits.begin(), store::kKeyLimits.end(),
                              [&](const store::NamedKeyLimit& one) { return one.name == name; });
    if (known == store::kKeyLimits.end())
      return Fail(Code::kInvalidArgument, "there is no limit '{}' of a key", name);
    auto number = ParseInt<int64_t>(text);
    if (text == "default")
      limits.*known->field = std::nullopt;
    else if (number && *number >= 0)
      limits.*known->field = *number;
    else
      return Fail(Code::kInvalidArgument, "{}: '{}' is neither a number nor \"default\"", name,
                  text);
  }
  return {};
}

json::object ToJson(const store::ApiKey& key) {
  json::object limits;
  for (const auto& [name, field] : store::kKeyLimits)
    if (key.limits.*field) limits[name] = *(key.limits.*field);
  return {{"id", key.id},
          {"name", key.name},
          {"hint", key.hint},
          {"createdAt", FormatTime(key.created_at)},
          {"revoked", key.revoked_at.has_value()},
          {"limits", std::move(limits)}};
}

std::string LimitsText(const KeyLimits& limits) {
  std::string text;
  for (const auto& [name, field] : store::kKeyLimits)
    if (limits.*field)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, *(limits.*field));
  return text;
}

class Runner {
 public:
  Runner(store::Store& store, bool as_json) : store_(store), json_(as_json) {}

  Task<Result<int>> Run(AddKey add) {
    auto made = sandbox::MakeApiKey(add.name);
    CO_TRY(ApplyLimits(add.limits, made.row.limits));
    CO_TRY(co_await store_.AddApiKey(made.row));
    json::object shown = ToJson(made.row);
    shown["key"] = made.text;
    fmt::print("{}\n", json_ ? json::serialize(shown) : made.text);
    co_return Changed();
  }

  Task<Result<int>> Run(ListKeys) {
    CO_TRY_ASSIGN(auto keys, co_await store_.ListApiKeys());
    json::array list;
    std::vector<std::vector<std::string>> rows;
    for (const store::ApiKey& key : keys) {
      list.push_back(ToJson(key));
      rows.push_back({key.id, key.name, key.hint, FormatTime(key.created_at),
                      key.revoked_at ? "revoked" : "valid", LimitsText(key.limits)});
    }
    if (json_)
      fmt::print("{}\n", json::serialize(list));
    else
      fmt::print("{}", FormatTable({"ID", "NAME", "KEY", "MADE", "STATE", "LIMITS"}, rows));
    co_return 0;
  }

  Task<Result<int>> Run(LimitKey limit) {
    CO_TRY_ASSIGN(store::ApiKey key, co_await Find(limit.id));
    CO_TRY(ApplyLimits(limit.limits, key.limits));
    CO_TRY(co_await store_.UpdateApiKey(key));
    co_return Changed();
  }

  Task<Result<int>> Run(RevokeKey revoke) {
    CO_TRY_ASSIGN(store::ApiKey key, co_await Find(revoke.id));
    key.revoked_at = Now();
    CO_TRY(co_await store_.UpdateApiKey(key));
    co_return Changed();
  }

 private:
  Task<Result<store::ApiKey>> Find(std::string id) {
    CO_TRY_ASSIGN(auto keys, co_await store_.ListApiKeys());
    for (store::ApiKey& key : keys)
      if (key.id == id) co_return std::move(key);
    co_return Fail(Code::kNotFound, "there is no API key with the id '{}'", id);
  }

  int Changed() const {
    fmt::print(stderr, "A server that runs now reads this when it is started again.\n");
    return 0;
  }

  store::Store& store_;
  bool json_;
};

Task<void> RunAction(store::Store& store, const KeyCommand& command, Result<int>& result) {
  Runner runner(store, command.json);
  result =
      co_await std::visit([&](const auto& action) { return runner.Run(action); }, command.action);
  Status closed = co_await store.Close();
  if (result && !closed) result = tl::unexpected(closed.error());
}

Result<int> RunOrFail(const KeyCommand& command) {
  if (geteuid() != 0)
    return Fail(Code::kPermissionDenied, "caisson key needs root: the database is the server's");
  TRY_ASSIGN(ServerUser user, FindServerUser(command.config.user));
  TRY(PrepareDataDir(command.config, user));
  asio::io_context loop(1);
  TRY_ASSIGN(auto store, store::OpenStore(command.config.database_url, loop.get_executor(),
                                          {.retention_days = 0}));
  Result<int> result = 0;
  bool done = false;
  asio::co_spawn(loop, RunAction(*store, command, result), [&](std::exception_ptr thrown) {
    if (thrown) result = Fail(Code::kInternal, "this command failed in an unexpected way");
    done = true;
  });
  while (!done) loop.run_one();
  store.reset();
  // Files that were made now are root's: the server needs them.
  TRY(PrepareDataDir(command.config, user));
  return result;
}

}  // namespace

int RunKeyCommand(const KeyCommand& command) {
  auto status = RunOrFail(command);
  if (status) return *status;
  fmt::print(stderr, "caisson: {}\n", status.error().message());
  return 1;
}

}  // namespace caisson::cli
