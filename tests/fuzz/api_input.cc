// Bodies of /api/v1, the schemas they are checked with, and the patterns in these. The first byte
// says which.
#include <boost/json.hpp>

#include "api/input.h"
#include "api/pattern.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

namespace json = boost::json;

// Every word that a schema may use.
constexpr const char* kPart = R"({"type":"object","required":["name"],"properties":{
  "name":{"type":"string","minLength":1,"maxLength":8,"pattern":"^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
  "at":{"type":"string","format":"date-time"},
  "id":{"type":"string","format":"uuid"}}})";
constexpr const char* kWhole =
    R"({"type":"object","minProperties":1,"maxProperties":6,"properties":{
  "part":{"$ref":"#/components/schemas/Part"},
  "parts":{"type":"array","minItems":1,"maxItems":4,"uniqueItems":true,
           "items":{"$ref":"#/components/schemas/Part"}},
  "kind":{"enum":["a","b",null]},
  "one":{"const":1},
  "number":{"type":"integer","minimum":-3,"maximum":9007199254740993},
  "share":{"type":"number","minimum":0,"maximum":1},
  "either":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"boolean"}]},
  "more":{"type":"object","additionalProperties":{"type":"string"}}}})";

const api::Schemas& Known() {
  static const api::Schemas schemas = [] {
    api::Schemas made;
    made.Add("Part", kPart);
    made.Add("Whole", kWhole);
    return made;
  }();
  return schemas;
}

void ReadBody(std::string_view text) {
  static const Config config;
  auto value = api::ParseJson(text, config);
  if (!value) {
    Check(value.error().status == 400 || value.error().status == 422, "an odd refusal");
    Check(!value.error().message.empty(), "a refusal without a reason");
    return;
  }
  for (const char* name : {"Whole", "Part"}) {
    json::value checked = *value;
    if (auto fits = api::CheckSchema(Known(), name, checked); !fits) {
      Check(fits.error().status == 422 && !fits.error().message.empty(), "an odd refusal");
      continue;
    }
    json::value again = checked;
    Check(static_cast<bool>(api::CheckSchema(Known(), name, again)), "it fits only once");
    Check(again == checked, "the second check changed it");
    auto told = api::ParseJson(json::serialize(checked), config);
    Check(told && *told == checked, "a body changed on its way");
  }
}

// A pattern, a NUL, a text. Longer ones are nobody's: patterns stand in this program.
void ReadPattern(std::string_view input) {
  size_t end = input.find('\0');
  if (end == std::string_view::npos || end > 24 || input.size() - end > 13) return;
  auto pattern = api::Pattern::Parse(input.substr(0, end));
  if (!pattern) return;
  Check(input[0] == '^' && input[end - 1] == '$', "a pattern that is not anchored");
  (void)pattern->Matches(input.substr(end + 1));
}

// Ours, with texts of any length.
void MatchOwn(std::string_view text) {
  static const auto name = api::Pattern::Parse("^[a-z][a-z0-9-]{0,63}$").value();
  bool wanted = !text.empty() && text.size() <= 64 && text[0] >= 'a' && text[0] <= 'z' &&
                text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
  Check(name.Matches(text) == wanted, "a pattern matches something else");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      caisson::fuzz::ReadBody(text);
      break;
    case 1:
      caisson::fuzz::ReadPattern(text);
      break;
    default:
      caisson::fuzz::MatchOwn(text);
  }
  return 0;
}
