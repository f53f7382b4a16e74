#include "work/json_fields.h"

#include <boost/json/parse.hpp>

namespace caisson::work {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

int64_t IntOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value && value->is_int64()) return value->as_int64();
  // 3.0 is 3; what no such number can hold is none.
  constexpr double kEdge = 9.2e18;
  double number = NumberOf(object, name);
  return number > -kEdge && number < kEdge ? static_cast<int64_t>(number) : 0;
}

double NumberOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  boost::system::error_code ec;
  return value && value->is_number() ? value->to_number<double>(ec) : 0;
}

bool TrueIn(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_bool() && value->as_bool();
}

std::vector<std::string> TextsOf(const json::object& object, std::string_view name) {
  std::vector<std::string> texts;
  for (const json::value& item : ArrayIn(object, name))
    if (item.is_string()) texts.emplace_back(item.as_string());
  return texts;
}

const json::object& ObjectIn(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* value = object.if_contains(name);
  return value && value->is_object() ? value->as_object() : kNone;
}

const json::array& ArrayIn(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* value = object.if_contains(name);
  return value && value->is_array() ? value->as_array() : kNone;
}

json::object ParseObject(std::string_view text) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  return !ec && value.is_object() ? std::move(value.as_object()) : json::object();
}

json::array ParseArray(std::string_view text) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  return !ec && value.is_array() ? std::move(value.as_array()) : json::array();
}

Status CheckText(std::string_view text, std::string_view what, size_t min, size_t max) {
  size_t characters = 0;
  for (char c : text) {
    if (!IsContinuation(c)) ++characters;
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
      return Fail(Code::kInvalidArgument, "{} must not hold control characters", what);
  }
  if (characters < min)
    return min == 1
               ? Fail(Code::kInvalidArgument, "{} must not be empty", what)
               : Fail(Code::kInvalidArgument, "{} must have at least {} characters", what, min);
  if (characters > max)
    return Fail(Code::kInvalidArgument, "{} must have at most {} characters, not {}", what, max,
                characters);
  return {};
}

std::string Shorten(std::string_view text, size_t max) {
  if (text.size() <= max) return std::string(text);
  size_t end = max;
  while (end > 0 && IsContinuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace caisson::work
