#include "api/input.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"

namespace caisson::api {
namespace {

constexpr const char* kInvalid = "validation_failed";

// Databases take neither of the others.
bool IsCleanText(std::string_view text) {
  return text.find('\0') == std::string_view::npos && ToUtf8(text) == text;
}

Checked<void> CheckValue(std::string_view text, const Parameter& parameter) {
  if (!IsCleanText(text)) return Refuse(422, kInvalid, "{} must be UTF-8 text", parameter.name);
  if (parameter.type == "integer") {
    auto number = ParseInt<int64_t>(text);
    if (!number || *number < parameter.min || *number > parameter.max)
      return Refuse(422, kInvalid, "{} must be a whole number from {} to {}, not '{}'",
                    parameter.name, parameter.min, parameter.max, text);
  }
  if (parameter.type == "boolean" && text != "true" && text != "false")
    return Refuse(422, kInvalid, "{} must be true or false, not '{}'", parameter.name, text);
  if (!parameter.values.empty() &&
      std::ranges::find(parameter.values, text) == parameter.values.end())
    return Refuse(422, kInvalid, "{} must be one of {}, not '{}'", parameter.name,
                  fmt::join(parameter.values, ", "), text);
  return {};
}

// SECURITY: a request may not hold parts that are cheap to send and dear to store or to show.
Checked<void> CheckSizes(const json::value& value, const std::string& path, const Config& config) {
  auto named = [&] { return path.empty() ? std::string("the body") : path; };
  if (value.is_string()) {
    std::string_view text = value.as_string();
    auto characters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
    if (characters > config.api_max_string)
      return Refuse(422, kInvalid, "{} must have at most {} characters", named(),
                    config.api_max_string);
    if (text.find('\0') != std::string_view::npos)
      return Refuse(422, kInvalid, "{} must not hold the character U+0000", named());
  }
  if (value.is_array()) {
    const json::array& list = value.as_array();
    if (list.size() > static_cast<size_t>(config.api_max_array))
      return Refuse(422, kInvalid, "{} must have at most {} entries", named(),
                    config.api_max_array);
    for (size_t i = 0; i < list.size(); ++i)
      if (auto checked = CheckSizes(list[i], fmt::format("{}[{}]", path, i), config); !checked)
        return checked;
  }
  if (value.is_object()) {
    if (value.as_object().size() > static_cast<size_t>(config.api_max_array))
      return Refuse(422, kInvalid, "{} must have at most {} fields", named(), config.api_max_array);
    for (const auto& [name, inner] : value.as_object()) {
      std::string_view field = name;
      std::string where = path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
      if (field.find('\0') != std::string_view::npos || field.size() > 256)
        return Refuse(422, kInvalid, "{} has a field whose name is too long or holds U+0000",
                      named());
      if (auto checked = CheckSizes(inner, where, config); !checked) return checked;
    }
  }
  return {};
}

}  // namespace

Checked<void> CheckParams(const http::PathParams& params) {
  for (const auto& [name, text] : params)
    if (!IsCleanText(text)) return Refuse(404, "not_found", "there is nothing with such an id");
  return {};
}

Checked<void> CheckQuery(const http::Query& query, const std::vector<Parameter>& known) {
  std::vector<std::string_view> seen;
  for (const auto& [name, text] : query.all()) {
    auto parameter = std::ranges::find(known, name, &Parameter::name);
    if (parameter == known.end())
      return Refuse(422, kInvalid, "'{}' is not a parameter of this call", name);
    if (!parameter->repeated && std::ranges::find(seen, name) != seen.end())
      return Refuse(422, kInvalid, "{} may be given only once", name);
    if (auto checked = CheckValue(text, *parameter); !checked) return checked;
    seen.push_back(parameter->name);
  }
  return {};
}

Checked<void> CheckContentType(const http::RequestHead& request) {
  std::string_view type = request.headers.Value("Content-Type");
  std::string_view name = Trim(type.substr(0, type.find(';')));
  if (EqualsIgnoreCase(name, "application/json")) return {};
  return Refuse(415, "unsupported_media_type",
                "the body must be JSON, with Content-Type: application/json");
}

Checked<json::value> ParseJson(std::string_view text, const Config& config) {
  json::parse_options options;
  options.max_depth = static_cast<size_t>(config.api_max_json_depth);
  boost::system::error_code ec;
  json::value value = json::parse(text, ec, {}, options);
  if (ec == json::error::too_deep)
    return Refuse(422, kInvalid, "the body is nested deeper than {} levels",
                  config.api_max_json_depth);
  if (ec) return Refuse(400, "malformed_json", "the body is not JSON: {}", ec.message());
  if (auto checked = CheckSizes(value, "", config); !checked)
    return tl::unexpected(checked.error());
  return value;
}

Config LimitsOfFiles(const Config& config) {
  Config limits = config;
  limits.api_max_string = std::max(config.api_max_string, config.api_max_body_bytes);
  limits.api_max_array = std::max(config.api_max_array, config.build_max_files);
  return limits;
}

Checked<void> CheckSchema(const Schemas& schemas, std::string_view name, json::value& value) {
  if (Status checked = schemas.Check(name, value); !checked)
    return Refuse(422, kInvalid, "{}", checked.error().message());
  return {};
}

}  // namespace caisson::api
