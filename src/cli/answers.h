// Answers of /api/v1 on the terminal: their fields, as JSON, as tables.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "cli/api_client.h"

namespace caisson::cli {

using Rows = std::vector<std::vector<std::string>>;

void Print(std::string_view text);
void PrintJson(const boost::json::value& value);

// Fields of answers, lenient: a newer or older server may leave some out.
std::string Text(const boost::json::value& object, std::string_view name);
int64_t Number(const boost::json::value& object, std::string_view name);
boost::json::array List(const boost::json::value& object, std::string_view name);
// How long ago it was: "5m", "-" if it is not said.
std::string Age(const boost::json::value& object, std::string_view name);

// By its name, if there is exactly one of it; else what was given is an id.
Task<Result<std::string>> FindAgent(ApiClient& client, std::string name);

// Does `action` with a client of the server; its exit status, or 1 with what went wrong on standard
// error.
int RunClient(const ServerAccess& server,
              const std::function<Task<Result<int>>(ApiClient&)>& action);

}  // namespace caisson::cli
