#include "api/schema.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>

#include "base/log.h"
#include "base/time.h"

namespace caisson::api {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 27> kWords = {
    "type",      "properties",    "required",     "additionalProperties",
    "items",     "enum",          "const",        "minLength",
    "maxLength", "pattern",       "format",       "minimum",
    "maximum",   "minItems",      "maxItems",     "uniqueItems",
    "anyOf",     "$ref",          "title",        "description",
    "default",   "examples",      "readOnly",     "deprecated",
    "writeOnly", "minProperties", "maxProperties"};
constexpr std::string_view kReference = "#/components/schemas/";

[[noreturn]] void Broken(std::string_view name, std::string_view why) {
  LogError("a schema of the API is broken", {{"schema", name}, {"why", why}});
  std::abort();
}

std::string Named(const std::string& path) { return path.empty() ? "the body" : path; }
std::string Join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

tl::unexpected<Error> Wrong(const std::string& path, std::string_view what) {
  return Fail(Code::kInvalidArgument, "{} {}", Named(path), what);
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::optional<int64_t> WholeNumber(const json::value& value) {
  if (value.is_int64()) return value.as_int64();
  constexpr double kEdge = 9.2e18;
  if (value.is_double() && std::fabs(value.as_double()) < kEdge &&
      std::trunc(value.as_double()) == value.as_double())
    return static_cast<int64_t>(value.as_double());
  return std::nullopt;
}

bool IsOfType(json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "number")
    return value.is_number() && (!value.is_double() || std::isfinite(value.as_double()));
  auto whole = WholeNumber(value);
  if (whole) value = *whole;
  return whole.has_value();
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !isxdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

std::string TypeNames(const json::value& type) {
  if (type.is_string()) return std::string(type.as_string());
  std::string names;
  for (const json::value& one : type.as_array())
    names += (names.empty() ? "" : " or ") + std::string(one.as_string());
  return names;
}

}  // namespace

void Schemas::Add(std::string_view name, std::string_view text) {
  boost::system::error_code ec;
  json::value schema = json::parse(text, ec);
  if (ec || !schema.is_object()) Broken(name, "it is not a JSON object");
  if (Has(name)) Broken(name, "there is one of this name already");
  Prepare(name, schema.as_object());
  all_.emplace(name, std::move(schema));
}

void Schemas::Prepare(std::string_view name, Object& schema) {
  for (const auto& [word, value] : schema) {
    if (std::ranges::find(kWords, std::string_view(word)) == kWords.end())
      Broken(name, fmt::format("the word '{}' is not checked", std::string_view(word)));
    if (word == "pattern") {
      auto pattern = Pattern::Parse(value.as_string());
      if (!pattern) Broken(name, "its pattern is not of the simple kind");
      patterns_.emplace(std::string(value.as_string()), std::move(*pattern));
    }
    if (word == "format" && value != "date-time" && value != "uuid")
      Broken(name, "its format is not checked");
  }
  auto prepare = [&](json::value* inner) {
    if (inner && inner->is_object()) Prepare(name, inner->as_object());
  };
  if (json::value* properties = schema.if_contains("properties")) {
    for (auto& [field, inner] : properties->as_object()) prepare(&inner);
    if (!schema.contains("additionalProperties")) schema["additionalProperties"] = false;
  }
  prepare(schema.if_contains("items"));
  prepare(schema.if_contains("additionalProperties"));
  if (json::value* forms = schema.if_contains("anyOf"))
    for (json::value& form : forms->as_array()) prepare(&form);
}

Status Schemas::Check(std::string_view name, Value& value) const {
  const json::value* schema = all_.if_contains(name);
  if (!schema) Broken(name, "there is no such schema");
  return CheckValue(schema->as_object(), value, "");
}

Status Schemas::CheckValue(const Object& schema, Value& value, const std::string& path) const {
  if (const json::value* reference = schema.if_contains("$ref")) {
    std::string_view target = reference->as_string();
    const json::value* other = all_.if_contains(target.substr(kReference.size()));
    if (!other) Broken(target, "there is no such schema");
    TRY(CheckValue(other->as_object(), value, path));
  }
  if (const json::value* forms = schema.if_contains("anyOf")) {
    bool fits = std::ranges::any_of(forms->as_array(), [&](const json::value& form) {
      json::value copy = value;
      if (!CheckValue(form.as_object(), copy, path)) return false;
      value = std::move(copy);
      return true;
    });
    if (!fits) return Wrong(path, "has none of the forms it may have");
  }
  TRY(CheckType(schema, value, path));
  if (const json::value* allowed = schema.if_contains("enum"))
    if (std::ranges::find(allowed->as_array(), value) == allowed->as_array().end())
      return Wrong(path, fmt::format("must be one of {}", json::serialize(*allowed)));
  if (const json::value* only = schema.if_contains("const"); only && *only != value)
    return Wrong(path, fmt::format("must be {}", json::serialize(*only)));
  if (value.is_string()) return CheckText(schema, value, path);
  if (value.is_number()) return CheckNumber(schema, value, path);
  if (value.is_array()) return CheckList(schema, value, path);
  if (value.is_object()) return CheckObject(schema, value, path);
  return {};
}

Status Schemas::CheckType(const Object& schema, Value& value, const std::string& path) const {
  const json::value* type = schema.if_contains("type");
  if (!type) return {};
  bool fits = type->is_string()
                  ? IsOfType(value, type->as_string())
                  : std::ranges::any_of(type->as_array(), [&](const json::value& one) {
                      return IsOfType(value, one.as_string());
                    });
  if (!fits) return Wrong(path, fmt::format("must be of type {}", TypeNames(*type)));
  return {};
}

Status Schemas::CheckText(const Object& schema, const Value& value, const std::string& path) const {
  std::string_view text = value.as_string();
  auto length = static_cast<int64_t>(Characters(text));
  if (const json::value* least = schema.if_contains("minLength");
      least && length < least->as_int64())
    return Wrong(path, fmt::format("must have at least {} characters", least->as_int64()));
  if (const json::value* most = schema.if_contains("maxLength"); most && length > most->as_int64())
    return Wrong(path, fmt::format("must have at most {} characters", most->as_int64()));
  if (const json::value* pattern = schema.if_contains("pattern"))
    if (!patterns_.find(std::string_view(pattern->as_string()))->second.Matches(text))
      return Wrong(path, fmt::format("must match {}", std::string_view(pattern->as_string())));
  if (const json::value* format = schema.if_contains("format")) {
    if (*format == "uuid" && !IsUuid(text)) return Wrong(path, "must be a UUID");
    if (*format == "date-time" && !ParseTime(text))
      return Wrong(path, "must be a time, for example 2026-11-15T10:16:44Z");
  }
  return {};
}

Status Schemas::CheckNumber(const Object& schema, const Value& value,
                            const std::string& path) const {
  double number = value.to_number<double>();
  if (const json::value* least = schema.if_contains("minimum");
      least && number < least->to_number<double>())
    return Wrong(path, fmt::format("must be at least {}", json::serialize(*least)));
  if (const json::value* most = schema.if_contains("maximum");
      most && number > most->to_number<double>())
    return Wrong(path, fmt::format("must be at most {}", json::serialize(*most)));
  return {};
}

Status Schemas::CheckList(const Object& schema, Value& value, const std::string& path) const {
  json::array& list = value.as_array();
  auto size = static_cast<int64_t>(list.size());
  if (const json::value* least = schema.if_contains("minItems"); least && size < least->as_int64())
    return Wrong(path, fmt::format("must have at least {} entries", least->as_int64()));
  if (const json::value* most = schema.if_contains("maxItems"); most && size > most->as_int64())
    return Wrong(path, fmt::format("must have at most {} entries", most->as_int64()));
  if (const json::value* items = schema.if_contains("items"))
    for (size_t i = 0; i < list.size(); ++i)
      TRY(CheckValue(items->as_object(), list[i], fmt::format("{}[{}]", path, i)));
  const json::value* unique = schema.if_contains("uniqueItems");
  if (unique && unique->as_bool())
    for (size_t i = 1; i < list.size(); ++i)
      if (std::find(list.begin(), list.begin() + static_cast<ptrdiff_t>(i), list[i]) !=
          list.begin() + static_cast<ptrdiff_t>(i))
        return Wrong(path, "must not have the same entry twice");
  return {};
}

Status Schemas::CheckObject(const Object& schema, Value& value, const std::string& path) const {
  json::object& object = value.as_object();
  auto size = static_cast<int64_t>(object.size());
  if (const json::value* least = schema.if_contains("minProperties");
      least && size < least->as_int64())
    return Wrong(path, fmt::format("must have at least {} fields", least->as_int64()));
  if (const json::value* most = schema.if_contains("maxProperties");
      most && size > most->as_int64())
    return Wrong(path, fmt::format("must have at most {} fields", most->as_int64()));
  if (const json::value* required = schema.if_contains("required"))
    for (const json::value& name : required->as_array())
      if (!object.contains(name.as_string()))
        return Wrong(Join(path, name.as_string()), "is missing");
  const json::value* properties = schema.if_contains("properties");
  const json::value* others = schema.if_contains("additionalProperties");
  for (auto& [name, inner] : object) {
    const json::value* known = properties ? properties->as_object().if_contains(name) : nullptr;
    std::string where = Join(path, name);
    if (known)
      TRY(CheckValue(known->as_object(), inner, where));
    else if (others && others->is_bool() && !others->as_bool())
      return Wrong(where, "is not a field that is known here");
    else if (others && others->is_object())
      TRY(CheckValue(others->as_object(), inner, where));
  }
  return {};
}

}  // namespace caisson::api
