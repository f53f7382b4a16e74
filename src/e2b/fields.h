// Typed reading of JSON request bodies. A field that is absent and one that is null are the same;
// a field of the wrong type is kInvalidArgument with a text that names it; unknown fields are
// ignored.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::e2b {

// Parses a whole body, which must be one object; an empty body is an empty object if `optional`.
Result<boost::json::object> ParseBody(std::string_view text, bool optional);

// Each returns nothing if the field is not there. `path` is for the text ("network.allowOut");
// its last part is the name looked up.
Result<std::optional<std::string>> TakeString(const boost::json::object& body,
                                              std::string_view path);
Result<std::optional<int64_t>> TakeInt32(const boost::json::object& body, std::string_view path);
Result<std::optional<bool>> TakeBool(const boost::json::object& body, std::string_view path);
Result<std::optional<std::vector<std::string>>> TakeStrings(const boost::json::object& body,
                                                            std::string_view path);
Result<std::map<std::string, std::string>> TakeMap(const boost::json::object& body,
                                                   std::string_view path);
// Null if it is not there; valid as long as `body`.
Result<const boost::json::object*> TakeObject(const boost::json::object& body,
                                              std::string_view path);
Result<const boost::json::array*> TakeArray(const boost::json::object& body, std::string_view path);

}  // namespace caisson::e2b
