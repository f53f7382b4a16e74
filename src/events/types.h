// Every type of event there is, with the fields of its data. One table: what is emitted is checked
// against it, and the API shows it as JSON schemas.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "base/error.h"

namespace caisson::events {

enum class FieldKind { kText, kInteger, kNumber, kBool, kObject, kList };

struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kText;
  bool required = true;
};

struct Type {
  std::string_view name;
  std::string_view description;
  std::span<const Field> fields;
  bool stored = true;  // false: only in a stream ("heartbeat"), without an id
};

std::span<const Type> Types();
// Null if there is none.
const Type* FindType(std::string_view name);
// The JSON schema of its data. Further fields are allowed: readers ignore what they do not know.
boost::json::object SchemaOf(const Type& type);
// kInternal with a sentence: an unknown type, a field that is missing or of another kind.
Status CheckData(std::string_view type, const boost::json::object& data);

}  // namespace caisson::events
