// The part of JSON Schema (2020-12) that requests and answers are described with, and its check.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <string_view>

#include "api/pattern.h"
#include "base/error.h"

namespace caisson::api {

// Known words: type, properties, required, additionalProperties, items, enum, const, minLength,
// maxLength, pattern (see pattern.h), format (date-time, uuid), minimum, maximum, minItems,
// maxItems, uniqueItems, minProperties, maxProperties, anyOf, $ref, and those that only explain:
// description, title, default, examples, deprecated, readOnly, writeOnly.
// An object that lists its properties has no others, unless it says "additionalProperties".
class Schemas {
 public:
  // A text that is not JSON or uses other words is a mistake in this program and ends it.
  void Add(std::string_view name, std::string_view text);
  bool Has(std::string_view name) const { return all_.contains(name); }
  // kInvalidArgument names the field that does not fit. Whole numbers become int64: 3.0 is 3.
  Status Check(std::string_view name, boost::json::value& value) const;
  // All of them, for the document.
  const boost::json::object& all() const { return all_; }

 private:
  using Object = boost::json::object;
  using Value = boost::json::value;

  void Prepare(std::string_view name, Object& schema);
  Status CheckValue(const Object& schema, Value& value, const std::string& path) const;
  Status CheckType(const Object& schema, Value& value, const std::string& path) const;
  Status CheckText(const Object& schema, const Value& value, const std::string& path) const;
  Status CheckNumber(const Object& schema, const Value& value, const std::string& path) const;
  Status CheckList(const Object& schema, Value& value, const std::string& path) const;
  Status CheckObject(const Object& schema, Value& value, const std::string& path) const;

  Object all_;
  std::map<std::string, Pattern, std::less<>> patterns_;  // by their text
};

}  // namespace caisson::api
