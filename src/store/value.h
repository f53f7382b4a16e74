// What a column can hold, whatever the database.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"

namespace caisson::store {

// NULL, a number, a fraction, a text. Times are nanoseconds since 1970, truth is 0 or 1, anything
// with a structure is JSON text.
using Value = std::variant<std::monostate, int64_t, double, std::string>;

inline Value ToValue(std::string_view text) { return std::string(text); }
inline Value ToValue(const std::string& text) { return text; }
inline Value ToValue(const char* text) { return std::string(text); }
inline Value ToValue(double value) { return value; }
inline Value ToValue(Time value) { return UnixNanos(value); }
template <std::integral T>
Value ToValue(T value) {
  return static_cast<int64_t>(value);
}
template <class T>
Value ToValue(const std::optional<T>& value) {
  return value ? ToValue(*value) : Value();
}

}  // namespace caisson::store
