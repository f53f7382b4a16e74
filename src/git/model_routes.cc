#include <algorithm>

#include "base/text.h"
#include "git/broker.h"
#include "git/upstream.h"

namespace caisson::git {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// How the well-known ones want their key.
std::string_view HeaderFor(std::string_view host) {
  if (host.find("anthropic") != std::string_view::npos) return "x-api-key";
  if (host.find("googleapis") != std::string_view::npos) return "x-goog-api-key";
  return "authorization";
}

// "NAME=URL VARIABLE [HEADER]".
Result<ModelRoute> ParseOne(std::string_view text,
                            const std::map<std::string, std::string>& environment) {
  std::vector<std::string_view> words;
  for (std::string_view word : Split(text, ' '))
    if (!Trim(word).empty()) words.push_back(Trim(word));
  size_t equals = words.front().find('=');
  if (equals == std::string_view::npos || words.size() < 2 || words.size() > 3)
    return Fail(
        Code::kInvalidArgument,
        "\"{}\" is not a route to a model; expected NAME=https://HOST KEYVARIABLE [HEADER].", text);
  ModelRoute route;
  route.name = words[0].substr(0, equals);
  route.base_url = words[0].substr(equals + 1);
  if (!IsName(route.name))
    return Fail(Code::kInvalidArgument,
                "\"{}\" is not a name of a model's route: lower-case letters, digits and dashes.",
                route.name);
  TRY_ASSIGN(Origin origin, ParseOrigin(route.base_url));
  route.header = ToLower(words.size() == 3 ? words[2] : HeaderFor(origin.host));
  if (!IsName(route.header))
    return Fail(Code::kInvalidArgument, "\"{}\" is not the name of a header.", route.header);
  auto key = environment.find(std::string(words[1]));
  if (key == environment.end() || Trim(key->second).empty())
    return Fail(
        Code::kInvalidArgument,
        "The route to the model \"{}\" needs the environment variable {}, which is not set.",
        route.name, words[1]);
  route.value = Trim(key->second);
  if (route.header == "authorization") route.value.insert(0, "Bearer ");
  return route;
}

}  // namespace

Result<std::vector<ModelRoute>> ParseModelRoutes(
    const std::string& text, const std::map<std::string, std::string>& environment) {
  std::string lines = text;
  std::replace(lines.begin(), lines.end(), ',', '\n');
  std::vector<ModelRoute> routes;
  for (std::string_view line : Split(lines, '\n')) {
    if (Trim(line).empty()) continue;
    TRY_ASSIGN(ModelRoute route, ParseOne(Trim(line), environment));
    for (const ModelRoute& other : routes)
      if (other.name == route.name)
        return Fail(Code::kInvalidArgument, "There are two routes to a model \"{}\".", route.name);
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace caisson::git
