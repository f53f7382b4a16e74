#include "envd/proto_json.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::envd {
namespace {

std::string ToSnakeCase(std::string_view camel) {
  std::string out;
  for (char c : camel) {
    if (c >= 'A' && c <= 'Z') {
      out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

tl::unexpected<Error> WrongType(std::string_view name, std::string_view expected) {
  return Fail(Code::kInvalidArgument, "field \"{}\" must be {}", name, expected);
}

std::string_view View(const json::string& text) { return {text.data(), text.size()}; }

// Numbers may come as 5, 5.0, 5e0 or "5".
std::optional<int64_t> ToInteger(const json::value& value) {
  if (const auto* i = value.if_int64()) return *i;
  if (const auto* u = value.if_uint64()) {
    if (*u > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(*u);
  }
  if (const auto* d = value.if_double()) {
    if (std::trunc(*d) != *d || std::fabs(*d) > 9e15) return std::nullopt;
    return static_cast<int64_t>(*d);
  }
  if (const auto* s = value.if_string()) return ParseInt<int64_t>(View(*s));
  return std::nullopt;
}

}  // namespace

const json::value* Fields::Find(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  if (value == nullptr) value = object_.if_contains(ToSnakeCase(name));
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::string> Fields::String(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return WrongType(name, "a string");
  return std::string(View(value->get_string()));
}

Result<bool> Fields::Bool(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return WrongType(name, "a boolean");
  return value->get_bool();
}

Result<uint32_t> Fields::Uint32(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return 0U;
  auto number = ToInteger(*value);
  if (!number || *number < 0 || *number > UINT32_MAX)
    return WrongType(name, "an unsigned 32-bit integer");
  return static_cast<uint32_t>(*number);
}

Result<std::string> Fields::Bytes(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return WrongType(name, "a base64 string");
  auto bytes = Base64Decode(View(value->get_string()));
  if (!bytes) return WrongType(name, "a base64 string");
  return std::move(*bytes);
}

Result<std::vector<std::string>> Fields::Strings(std::string_view name) const {
  std::vector<std::string> out;
  const json::value* value = Find(name);
  if (value == nullptr) return out;
  if (!value->is_array()) return WrongType(name, "a list of strings");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return WrongType(name, "a list of strings");
    out.emplace_back(View(item.get_string()));
  }
  return out;
}

Result<std::map<std::string, std::string>> Fields::StringMap(std::string_view name) const {
  std::map<std::string, std::string> out;
  const json::value* value = Find(name);
  if (value == nullptr) return out;
  if (!value->is_object()) return WrongType(name, "an object of strings");
  for (const auto& item : value->get_object()) {
    if (!item.value().is_string()) return WrongType(name, "an object of strings");
    out[std::string(item.key())] = View(item.value().get_string());
  }
  return out;
}

Result<const json::object*> Fields::Message(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return WrongType(name, "an object");
  return &value->get_object();
}

Result<int> Fields::Enum(std::string_view name, EnumNames names) const {
  const json::value* value = Find(name);
  if (value == nullptr) return 0;
  if (const auto* text = value->if_string()) {
    for (const auto& [known, number] : names) {
      if (known == View(*text)) return number;
    }
    return Fail(Code::kInvalidArgument, "field \"{}\" has the unknown value \"{}\"", name,
                View(*text));
  }
  auto number = ToInteger(*value);
  if (!number || *number < INT32_MIN || *number > INT32_MAX)
    return WrongType(name, "the name or number of an enum value");
  return static_cast<int>(*number);
}

Result<std::string_view> Fields::OneOf(std::initializer_list<std::string_view> names) const {
  std::string_view set;
  for (std::string_view name : names) {
    if (!Has(name)) continue;
    if (!set.empty())
      return Fail(Code::kInvalidArgument, "only one of \"{}\" and \"{}\" may be set", set, name);
    set = name;
  }
  return set;
}

Status CheckNoNul(std::string_view text, std::string_view what) {
  if (text.find('\0') == std::string_view::npos) return {};
  return Fail(Code::kInvalidArgument, "{} must not contain a NUL byte", what);
}

}  // namespace caisson::envd
