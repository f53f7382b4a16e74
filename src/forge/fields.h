// Fields of JSON that others wrote: what is absent or of another kind is empty.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

namespace caisson::forge {

namespace json = boost::json;

inline const json::value* Field(const json::value& from, std::string_view name) {
  const json::object* object = from.if_object();
  return object ? object->if_contains(name) : nullptr;
}
inline std::string Text(const json::value& from, std::string_view name) {
  const json::value* field = Field(from, name);
  const json::string* text = field ? field->if_string() : nullptr;
  return text ? std::string(*text) : "";
}
// "a.b" of {"a":{"b":"text"}}.
inline std::string Text(const json::value& from, std::string_view outer, std::string_view inner) {
  const json::value* field = Field(from, outer);
  return field ? Text(*field, inner) : "";
}
inline int64_t Number(const json::value& from, std::string_view name) {
  const json::value* field = Field(from, name);
  return field && field->is_int64() ? field->get_int64() : 0;
}
inline bool Flag(const json::value& from, std::string_view name) {
  const json::value* field = Field(from, name);
  return field && field->is_bool() && field->get_bool();
}
inline const json::array* List(const json::value& from, std::string_view name) {
  const json::value* field = Field(from, name);
  return field ? field->if_array() : nullptr;
}

}  // namespace caisson::forge
