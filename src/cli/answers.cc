#include "cli/answers.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "base/encoding.h"
#include "base/time.h"
#include "cli/table.h"

namespace caisson::cli {

namespace json = boost::json;

void Print(std::string_view text) { fwrite(text.data(), 1, text.size(), stdout); }
void PrintJson(const json::value& value) { Print(json::serialize(value) + "\n"); }

std::string Text(const json::value& object, std::string_view name) {
  const json::value* value = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}
int64_t Number(const json::value& object, std::string_view name) {
  const json::value* value = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return value && value->is_int64() ? value->as_int64() : 0;
}
json::array List(const json::value& object, std::string_view name) {
  const json::value* value = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return value && value->is_array() ? value->as_array() : json::array();
}
std::string Age(const json::value& object, std::string_view name) {
  auto time = ParseTime(Text(object, name));
  if (!time) return "-";
  return FormatDuration(std::chrono::duration_cast<std::chrono::seconds>(Now() - *time).count());
}

Task<Result<std::string>> FindAgent(ApiClient& client, std::string name) {
  CO_TRY_ASSIGN(auto answer, co_await client.Call(
                                 "GET", "/api/v1/agents?limit=200&text=" + PercentEncode(name)));
  std::vector<std::string> found;
  for (const json::value& agent : List(answer.body, "agents"))
    if (Text(agent, "name") == name) found.push_back(Text(agent, "id"));
  if (found.size() > 1)
    co_return Fail(Code::kInvalidArgument, "there are {} agents called {}; give the id",
                   found.size(), name);
  co_return found.empty() ? name : found.front();
}
namespace {

Task<void> RunAction(ApiClient& client, const std::function<Task<Result<int>>(ApiClient&)>& action,
                     Result<int>& result) {
  result = co_await action(client);
}

}  // namespace

int RunClient(const ServerAccess& server,
              const std::function<Task<Result<int>>(ApiClient&)>& action) {
  asio::io_context loop(1);  // the client's connection is part of it
  auto client = ApiClient::Make(server);
  Result<int> result = 0;
  if (client) {
    asio::co_spawn(loop, RunAction(*client, action, result), [&](std::exception_ptr thrown) {
      if (thrown) result = Fail(Code::kInternal, "this command failed in an unexpected way");
      loop.stop();  // the connection that is kept for another call would keep it running
    });
    loop.run();
  } else {
    result = tl::unexpected(client.error());
  }
  fflush(stdout);
  if (result) return *result;
  fmt::print(stderr, "caisson: {}\n", Printable(result.error().message()));
  return 1;
}

}  // namespace caisson::cli
