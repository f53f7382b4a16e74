#include "e2b/fields.h"

#include <boost/json.hpp>
#include <limits>

namespace caisson::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 32;

const json::value* Find(const json::object& body, std::string_view path) {
  std::string_view name = path.substr(path.rfind('.') + 1);
  const json::value* value = body.if_contains(name);
  return value && value->is_null() ? nullptr : value;
}

tl::unexpected<Error> Wrong(std::string_view path, std::string_view wanted) {
  return Fail(Code::kInvalidArgument, "{} must be {}", path, wanted);
}

}  // namespace

Result<json::object> ParseBody(std::string_view text, bool optional) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    if (optional) return json::object();
    return Fail(Code::kInvalidArgument, "the request needs a body: a JSON object");
  }
  boost::system::error_code ec;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::value value = json::parse(text, ec, {}, options);
  if (ec) return Fail(Code::kInvalidArgument, "the body is not valid JSON: {}", ec.message());
  if (value.is_null() && optional) return json::object();
  if (!value.is_object()) return Fail(Code::kInvalidArgument, "the body must be a JSON object");
  return std::move(value.get_object());
}

Result<std::optional<std::string>> TakeString(const json::object& body, std::string_view path) {
  const json::value* value = Find(body, path);
  if (!value) return std::optional<std::string>();
  if (!value->is_string()) return Wrong(path, "a string");
  return std::optional<std::string>(std::string(value->get_string()));
}

Result<std::optional<int64_t>> TakeInt32(const json::object& body, std::string_view path) {
  const json::value* value = Find(body, path);
  if (!value) return std::optional<int64_t>();
  if (!value->is_int64() || value->get_int64() > std::numeric_limits<int32_t>::max() ||
      value->get_int64() < std::numeric_limits<int32_t>::min())
    return Wrong(path, "an integer of 32 bits");
  return std::optional<int64_t>(value->get_int64());
}

Result<std::optional<bool>> TakeBool(const json::object& body, std::string_view path) {
  const json::value* value = Find(body, path);
  if (!value) return std::optional<bool>();
  if (!value->is_bool()) return Wrong(path, "true or false");
  return std::optional<bool>(value->get_bool());
}

Result<std::optional<std::vector<std::string>>> TakeStrings(const json::object& body,
                                                            std::string_view path) {
  TRY_ASSIGN(const json::array* items, TakeArray(body, path));
  if (!items) return std::optional<std::vector<std::string>>();
  std::vector<std::string> strings;
  for (const json::value& item : *items) {
    if (!item.is_string()) return Wrong(path, "a list of strings");
    strings.emplace_back(item.get_string());
  }
  return std::optional(std::move(strings));
}

Result<std::map<std::string, std::string>> TakeMap(const json::object& body,
                                                   std::string_view path) {
  std::map<std::string, std::string> map;
  TRY_ASSIGN(const json::object* object, TakeObject(body, path));
  if (!object) return map;
  for (const auto& [key, value] : *object) {
    if (!value.is_string())
      return Fail(Code::kInvalidArgument, "{} must be an object of strings; '{}' is not one", path,
                  std::string_view(key));
    map.emplace(key, value.get_string());
  }
  return map;
}

Result<const json::object*> TakeObject(const json::object& body, std::string_view path) {
  const json::value* value = Find(body, path);
  if (value && !value->is_object()) return Wrong(path, "an object");
  return value ? &value->get_object() : nullptr;
}

Result<const json::array*> TakeArray(const json::object& body, std::string_view path) {
  const json::value* value = Find(body, path);
  if (value && !value->is_array()) return Wrong(path, "a list");
  return value ? &value->get_array() : nullptr;
}

}  // namespace caisson::e2b
