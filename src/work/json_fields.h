// Lenient reading of JSON that was checked before, or that programs of others wrote.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::work {

namespace json = boost::json;

// Each: "", 0, false or empty if the field is not there or of another type.
std::string TextOf(const json::object& object, std::string_view name);
int64_t IntOf(const json::object& object, std::string_view name);
double NumberOf(const json::object& object, std::string_view name);
bool TrueIn(const json::object& object, std::string_view name);
std::vector<std::string> TextsOf(const json::object& object, std::string_view name);
const json::object& ObjectIn(const json::object& object, std::string_view name);
const json::array& ArrayIn(const json::object& object, std::string_view name);

// A stored JSON text; an empty object (array) if it is none.
json::object ParseObject(std::string_view text);
json::array ParseArray(std::string_view text);

// Of a text that people wrote: at least `min` and at most `max` characters (not bytes), no control
// characters but line ends and tabs. kInvalidArgument names it by `what`.
Status CheckText(std::string_view text, std::string_view what, size_t min, size_t max);
// Cut to `max` bytes at a character's end, with "…" where something is missing.
std::string Shorten(std::string_view text, size_t max);

}  // namespace caisson::work
