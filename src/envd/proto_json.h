// Reading messages by proto3's JSON rules: lowerCamelCase or snake_case names, null means absent,
// int64 as string or number, bytes in either base64 alphabet, enums by name or number, unknown
// fields ignored. Every failure is kInvalidArgument and names the field.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::envd {

namespace json = boost::json;

// A view on one message; the object must outlive it.
class Fields {
 public:
  explicit Fields(const json::object& object) : object_(object) {}

  // The value of the field with this lowerCamelCase name; nullptr when absent or null.
  const json::value* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }

  // Absent fields give the proto3 default: "", false, 0, an empty list or map.
  Result<std::string> String(std::string_view name) const;
  Result<bool> Bool(std::string_view name) const;
  Result<uint32_t> Uint32(std::string_view name) const;
  Result<std::string> Bytes(std::string_view name) const;
  Result<std::vector<std::string>> Strings(std::string_view name) const;
  Result<std::map<std::string, std::string>> StringMap(std::string_view name) const;
  // nullptr when absent.
  Result<const json::object*> Message(std::string_view name) const;

  using EnumNames = std::span<const std::pair<std::string_view, int>>;
  // An unknown number is passed on, as open enums demand; an unknown name is an error.
  Result<int> Enum(std::string_view name, EnumNames names) const;

  // Which of `names` is set ("" if none); two of one oneof are an error.
  Result<std::string_view> OneOf(std::initializer_list<std::string_view> names) const;

 private:
  const json::object& object_;
};

// Fails with kInvalidArgument if `text` holds a NUL byte, which no path or argument can carry.
Status CheckNoNul(std::string_view text, std::string_view what);

}  // namespace caisson::envd
