#include "api/openapi.h"

#include <boost/json.hpp>

#include "api/authentication.h"
#include "base/text.h"

namespace caisson::api {
namespace {

constexpr std::string_view kDescription =
    "Everything of Caisson that E2B's API has no words for. Send an API key in X-API-KEY, or log "
    "in. Every POST takes an Idempotency-Key. docs/api.md explains what all calls have in common.";

json::object Reference(std::string_view schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

json::object Content(std::string_view type, json::object schema) {
  return {{type, json::object{{"schema", std::move(schema)}}}};
}

json::object PathParameter(std::string_view name) {
  return {{"name", name},
          {"in", "path"},
          {"required", true},
          {"schema", json::object{{"type", "string"}, {"minLength", 1}}}};
}

json::object QueryParameter(const Parameter& parameter) {
  json::object schema{{"type", parameter.type}};
  if (parameter.type == "integer") {
    schema["minimum"] = parameter.min;
    if (parameter.max != INT64_MAX) schema["maximum"] = parameter.max;
  }
  if (!parameter.values.empty()) {
    json::array values;
    for (const std::string& value : parameter.values) values.emplace_back(value);
    schema["enum"] = std::move(values);
  }
  if (parameter.repeated) schema = {{"type", "array"}, {"items", std::move(schema)}};
  json::object shown{{"name", parameter.name}, {"in", "query"}, {"schema", std::move(schema)}};
  if (!parameter.description.empty()) shown["description"] = parameter.description;
  return shown;
}

json::object IdempotencyParameter() {
  return {
      {"name", "Idempotency-Key"},
      {"in", "header"},
      {"description", "Any text of yours: sending the request again with it does nothing twice."},
      {"schema", json::object{{"type", "string"}, {"minLength", 1}, {"maxLength", 255}}}};
}

json::array ParametersOf(const Operation& operation) {
  json::array list;
  for (std::string_view part : Split(operation.pattern, '/'))
    if (part.starts_with('{')) list.push_back(PathParameter(part.substr(1, part.size() - 2)));
  for (const Parameter& parameter : operation.parameters) list.push_back(QueryParameter(parameter));
  if (IsIdempotent(operation)) list.push_back(IdempotencyParameter());
  return list;
}

json::object RequestOf(const Operation& operation) {
  json::object content = operation.request.empty()
                             ? Content("application/octet-stream", json::object{})
                             : Content("application/json", Reference(operation.request));
  return {{"required", !operation.body_optional && !operation.wants_raw_body},
          {"content", std::move(content)}};
}

// What the frame itself may answer.
std::vector<unsigned> ErrorsOf(const Operation& operation) {
  std::vector<unsigned> list = {422, 429, 500, 503};
  if (operation.access != Access::kNobody) list.insert(list.end(), {401, 403});
  bool names = operation.pattern.find('{') != std::string_view::npos;
  // Values of the right form can still make no sense, or name what does not exist.
  if (names || !operation.parameters.empty()) list.push_back(400);
  if (names || !operation.request.empty()) list.push_back(404);
  if (ChangesState(operation.method)) list.insert(list.end(), {400, 408, 413, 415});
  if (IsIdempotent(operation)) list.push_back(409);
  return list;
}

json::object ResponsesOf(const Operation& operation) {
  std::map<unsigned, json::object> all;
  for (unsigned status : ErrorsOf(operation))
    all[status] = {{"$ref", "#/components/responses/Error"}};
  for (const auto& [status, schema] : operation.responses) {
    json::object shown{{"description", http::ReasonPhrase(static_cast<unsigned>(status))}};
    if (schema == "Error")
      shown = {{"$ref", "#/components/responses/Error"}};
    else if (!schema.empty())
      shown["content"] = Content("application/json", Reference(schema));
    else if (!operation.stream.empty() && status == 200)
      shown["content"] = Content(operation.stream, json::object{});
    all[static_cast<unsigned>(status)] = std::move(shown);
  }
  json::object list;
  for (auto& [status, shown] : all) list[fmt::to_string(status)] = std::move(shown);
  return list;
}

std::string_view RoleName(Access access) {
  switch (access) {
    case Access::kNobody:
      return "nobody";
    case Access::kViewer:
      return "viewer";
    case Access::kMember:
      return "member";
    case Access::kAdmin:
      return "admin";
  }
  return "";
}

json::object Describe(const Served& served) {
  const Operation& operation = served.operation;
  json::object shown{{"operationId", operation.id},
                     {"tags", json::array{operation.tag}},
                     {"summary", operation.summary},
                     {"x-role", RoleName(operation.access)},
                     {"responses", ResponsesOf(operation)}};
  if (json::array parameters = ParametersOf(operation); !parameters.empty())
    shown["parameters"] = std::move(parameters);
  if (!operation.request.empty() || operation.wants_raw_body || operation.reads_body)
    shown["requestBody"] = RequestOf(operation);
  if (operation.access == Access::kNobody) shown["security"] = json::array{};
  if (served.alias) shown["deprecated"] = true;
  return shown;
}

json::object SecuritySchemes() {
  return {{"key", json::object{{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-KEY"}}},
          {"bearer", json::object{{"type", "http"}, {"scheme", "bearer"}}},
          {"login", json::object{{"type", "apiKey"}, {"in", "cookie"}, {"name", kAccessCookie}}}};
}

}  // namespace

std::string AliasId(std::string_view id, std::string_view pattern) {
  constexpr std::string_view kUsual = "/api/v1";
  if (pattern.starts_with(kUsual)) pattern.remove_prefix(kUsual.size());
  std::string made = std::string(id) + "Alias";
  bool begins = true;  // a word
  for (char c : pattern) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) made += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = !letter;
  }
  return made;
}

json::object MakeDocument(const std::deque<Served>& operations, const Schemas& schemas) {
  json::object paths;
  for (const Served& served : operations) {
    json::value& path = paths[served.operation.pattern];
    if (path.is_null()) path = json::object{};
    path.as_object()[ToLower(served.operation.method)] = Describe(served);
  }
  json::object error{{"description", "Why it was not done."},
                     {"content", Content("application/json", Reference("Error"))}};
  json::array security;
  for (const auto& [name, scheme] : SecuritySchemes())
    security.push_back(json::object{{name, json::array{}}});
  return {{"openapi", "3.1.0"},
          {"info",
           json::object{
               {"title", "Caisson"}, {"version", CAISSON_VERSION}, {"description", kDescription}}},
          {"servers", json::array{json::object{{"url", "/"}}}},
          {"security", std::move(security)},
          {"paths", std::move(paths)},
          {"components", json::object{{"schemas", schemas.all()},
                                      {"responses", json::object{{"Error", std::move(error)}}},
                                      {"securitySchemes", SecuritySchemes()}}}};
}

}  // namespace caisson::api
