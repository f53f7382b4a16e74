// Reading of bodies and queries that the frame has checked against their description.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/time.h"
#include "http/message.h"

namespace caisson::api {

// A field that is absent or null is nothing.
inline const boost::json::value* Field(const boost::json::object& body, std::string_view name) {
  const boost::json::value* value = body.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}
inline std::optional<std::string> TextField(const boost::json::object& body,
                                            std::string_view name) {
  const boost::json::value* value = Field(body, name);
  return value ? std::optional<std::string>(value->as_string()) : std::nullopt;
}
inline std::optional<int64_t> NumberField(const boost::json::object& body, std::string_view name) {
  const boost::json::value* value = Field(body, name);
  return value ? std::optional(value->as_int64()) : std::nullopt;
}
inline std::optional<bool> FlagField(const boost::json::object& body, std::string_view name) {
  const boost::json::value* value = Field(body, name);
  return value ? std::optional(value->as_bool()) : std::nullopt;
}

inline int64_t NumberParameter(const http::Query& query, std::string_view name, int64_t otherwise) {
  auto text = query.Get(name);
  return text ? ParseInt<int64_t>(*text).value_or(otherwise) : otherwise;
}
inline std::string TextParameter(const http::Query& query, std::string_view name) {
  return std::string(query.Get(name).value_or(""));
}

// null if it never was.
inline boost::json::value EncodeOptionalTime(const std::optional<Time>& time) {
  if (!time) return nullptr;
  return boost::json::string(FormatTime(*time));
}

}  // namespace caisson::api
