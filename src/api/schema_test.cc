#include "api/schema.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace caisson::api {
namespace {

namespace json = boost::json;

std::string Check(const Schemas& schemas, std::string_view text) {
  json::value value = json::parse(text);
  Status checked = schemas.Check("S", value);
  return checked ? "" : checked.error().message();
}

TEST(Schemas, NamesTheFieldThatDoesNotFit) {
  Schemas schemas;
  schemas.Add("Inner",
              R"({"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}})");
  schemas.Add("S", R"({"type":"object","required":["name"],"properties":{
    "name":{"type":"string","minLength":2,"maxLength":3},
    "kind":{"enum":["x","y"]},
    "count":{"type":["integer","null"],"minimum":1,"maximum":5},
    "list":{"type":"array","maxItems":2,"uniqueItems":true,
            "items":{"$ref":"#/components/schemas/Inner"}},
    "map":{"type":"object","additionalProperties":{"type":"string"}},
    "id":{"type":"string","format":"uuid"},"at":{"type":"string","format":"date-time"},
    "word":{"type":"string","pattern":"^[a-z]+$"},
    "either":{"anyOf":[{"type":"string"},{"type":"integer"}]}}})");
  EXPECT_EQ(Check(schemas, R"({"name":"ab"})"), "");
  EXPECT_EQ(Check(schemas, R"({"name":"äöü","count":null,"kind":"x","map":{"a":"b"},
                              "list":[{"a":1},{"a":2.0}],"either":7,"word":"abc",
                              "id":"01234567-89ab-cdef-0123-456789abcdef",
                              "at":"2026-11-15T10:00:00Z"})"),
            "");
  for (const auto& [text, message] : std::vector<std::pair<std::string_view, std::string_view>>{
           {R"({})", "name is missing"},
           {R"([])", "the body must be of type object"},
           {R"({"name":"a"})", "name must have at least 2 characters"},
           {R"({"name":"abcd"})", "name must have at most 3 characters"},
           {R"({"name":1})", "name must be of type string"},
           {R"({"name":"ab","wings":2})", "wings is not a field that is known here"},
           {R"({"name":"ab","kind":"z"})", R"(kind must be one of ["x","y"])"},
           {R"({"name":"ab","count":1.5})", "count must be of type integer or null"},
           {R"({"name":"ab","count":9})", "count must be at most 5"},
           {R"({"name":"ab","count":1e300})", "count must be of type integer or null"},
           {R"({"name":"ab","list":[{"a":1},{"b":1}]})", "list[1].a is missing"},
           {R"({"name":"ab","list":[{"a":1},{"a":1}]})", "list must not have the same entry twice"},
           {R"({"name":"ab","list":[{"a":1},{"a":2},{"a":3}]})",
            "list must have at most 2 entries"},
           {R"({"name":"ab","map":{"k":1}})", "map.k must be of type string"},
           {R"({"name":"ab","id":"x"})", "id must be a UUID"},
           {R"({"name":"ab","at":"today"})", "at must be a time, for example 2026-11-15T10:16:44Z"},
           {R"({"name":"ab","word":"A"})", "word must match ^[a-z]+$"},
           {R"({"name":"ab","either":[]})", "either has none of the forms it may have"}})
    EXPECT_EQ(Check(schemas, text), message) << text;
}

TEST(Schemas, WholeNumbersBecomeIntegers) {
  Schemas schemas;
  schemas.Add("S", R"({"type":"object","properties":{"n":{"type":"integer"}}})");
  json::value value = json::parse(R"({"n":3.0})");
  ASSERT_TRUE(schemas.Check("S", value));
  EXPECT_EQ(value.at("n").as_int64(), 3);
}

TEST(Schemas, WhatIsNotCheckedCannotBeWritten) {
  Schemas schemas;
  EXPECT_DEATH(schemas.Add("A", R"({"multipleOf":2})"), "multipleOf");
  EXPECT_DEATH(schemas.Add("A", R"({"type":"string","pattern":"(a|b)*"})"), "pattern");
  EXPECT_DEATH(schemas.Add("A", R"({"type":"string","format":"email"})"), "format");
  EXPECT_DEATH(schemas.Add("A", "not JSON"), "not a JSON object");
}

TEST(Pattern, MatchesTheWholeText) {
  auto name = Pattern::Parse("^[A-Za-z0-9][A-Za-z0-9._@-]{0,3}$");
  ASSERT_TRUE(name);
  for (const char* good : {"a", "Z9", "a.b-", "a@__"}) EXPECT_TRUE(name->Matches(good)) << good;
  for (const char* bad : {"", ".a", "abcde", "a b", "a\n"}) EXPECT_FALSE(name->Matches(bad)) << bad;
  auto branch = Pattern::Parse("^a*[^/ ]+/\\.x?$");
  ASSERT_TRUE(branch);
  EXPECT_TRUE(branch->Matches("aab/.x"));
  EXPECT_TRUE(branch->Matches("aa/."));
  EXPECT_FALSE(branch->Matches("aa//."));
  for (const char* unknown : {"abc", "^a", "^a|b$", "^(a)$", "^.$", "^\\d$", "^[a$", "^a{x}$"})
    EXPECT_FALSE(Pattern::Parse(unknown)) << unknown;
}

}  // namespace
}  // namespace caisson::api
