#include "build/file_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace caisson::build {
namespace {

using ::testing::HasSubstr;
namespace json = boost::json;

Result<FileChange> Parse(std::string_view text) { return ParseFileChange(json::parse(text)); }
Result<std::vector<FileChange>> ParseAll(std::string_view text) {
  return ParseFileChanges(json::parse(text));
}

TEST(FileChange, ReadsNewContent) {
  auto change = Parse(R"({"path":"src/a.js","new_content":"let a = 1;\n","original_content":"x",
                          "change_type":"modify"})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->path, "src/a.js");
  EXPECT_EQ(change->new_content, "let a = 1;\n");
}

TEST(FileChange, AnEmptyFileIsSaidToBeEmpty) {
  EXPECT_EQ(Parse(R"({"path":"a","new_content":""})").value().new_content, "");
}

TEST(FileChange, ContentIsNamedNewContent) {
  auto change = Parse(R"({"path":"a","content":"text"})");
  ASSERT_FALSE(change);
  EXPECT_EQ(change.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(change.error().message(), HasSubstr("named \"new_content\""));
  EXPECT_FALSE(ParseAll(R"({"a":{"content":"text"}})"));
}

TEST(FileChange, Deletes) {
  for (const char* text :
       {R"({"path":"a","delete":true})", R"({"path":"a","change_type":"delete"})",
        R"({"path":"a","change_type":"delete","new_content":null})"}) {
    auto change = Parse(text);
    ASSERT_TRUE(change) << text;
    EXPECT_FALSE(change->new_content) << text;
  }
}

TEST(FileChange, RefusesWhatMeansNothing) {
  for (const char* text :
       {"null", "[]", "\"a\"", "{}", R"({"path":"a"})", R"({"path":1,"new_content":""})",
        R"({"new_content":"x"})", R"({"path":"a","new_content":1})",
        R"({"path":"a","new_content":null})", R"({"path":"a","delete":false})",
        R"({"path":"a","delete":"yes"})", R"({"path":"a","delete":true,"new_content":"x"})",
        R"({"path":"a","change_type":"move","new_content":"x"})",
        R"({"path":"a","change_type":1,"new_content":"x"})", R"({"path":"../a","new_content":"x"})",
        R"({"path":"a","new_content":"\u0000"})"})
    EXPECT_EQ(Parse(text).error().code(), Code::kInvalidArgument) << text;
}

TEST(FileChange, ReadsListsAndObjects) {
  auto list = ParseAll(R"([{"path":"a","new_content":"1"},{"path":"b","delete":true}])");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 2u);
  auto object = ParseAll(R"({"a":"1","b":{"new_content":"2"},"c":{"path":"c","delete":true}})");
  ASSERT_TRUE(object);
  ASSERT_EQ(object->size(), 3u);
  EXPECT_EQ((*object)[0].new_content, "1");
  EXPECT_EQ((*object)[1].new_content, "2");
  EXPECT_FALSE((*object)[2].new_content);
  for (const char* text : {"null", "\"a\"", "1", "[\"a\"]", R"({"a":1})", R"({"a":null})",
                           R"({"/a":"x"})", R"({"a":{"path":"b","new_content":"x"}})"})
    EXPECT_EQ(ParseAll(text).error().code(), Code::kInvalidArgument) << text;
}

TEST(FileChange, WhatIsNoTextComesInBase64) {
  auto list = ParseAll(R"([{"path":"a.png","new_content_base64":"iVAAAP8="},
                           {"path":"b","new_content_base64":""}])");
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ((*list)[0].new_content, std::string("\x89P\0\0\xff", 5));
  EXPECT_FALSE(IsText(*(*list)[0].new_content));
  EXPECT_EQ((*list)[1].new_content, "");
  auto object = ParseAll(R"({"a.png":{"new_content_base64":"iVAAAP8="}})");
  ASSERT_TRUE(object);
  EXPECT_EQ((*object)[0].new_content, (*list)[0].new_content);
  for (const char* text :
       {R"([{"path":"a","new_content_base64":"!"}])", R"([{"path":"a","new_content_base64":1}])",
        R"([{"path":"a","new_content":"1","new_content_base64":"MQ=="}])",
        R"([{"path":"a","new_content_base64":"MQ==","delete":true}])"})
    EXPECT_EQ(ParseAll(text).error().code(), Code::kInvalidArgument) << text;
}

TEST(FileChange, PathsStayInTheWorkspace) {
  for (const char* path : {"a", "src/main.js", ".gitignore", ".github/x.yml", "a b/ü.txt", "...",
                           "[slug]/page.tsx", "@scope/x", "a.git/b"})
    EXPECT_TRUE(CheckPath(path)) << path;
  for (std::string path :
       {std::string(), std::string("/etc/passwd"), std::string(".."), std::string("a/../b"),
        std::string("./a"), std::string("a/."), std::string("a//b"), std::string("a/"),
        std::string("a\nb"), std::string("a\0b", 3), std::string("a\x7f"), std::string("\xff"),
        std::string("a\\b"), std::string(".git"), std::string(".GIT/hooks/x"),
        std::string("sub/.git/config"), std::string(256, 'a'), std::string(2'000, 'a')})
    EXPECT_EQ(CheckPath(path).error().code(), Code::kInvalidArgument) << path;
}

TEST(FileChange, ErrorsQuotePathsSafely) {
  std::string message = CheckPath("a\r\nInjected: yes").error().message();
  EXPECT_EQ(message.find_first_of("\r\n"), std::string::npos);
  EXPECT_LT(CheckPath(std::string(100'000, 'a')).error().message().size(), 300u);
}

TEST(CheckFiles, BoundsNumberAndSize) {
  Config config;
  config.build_max_files = 2;
  config.build_max_file_bytes = 10;
  config.build_max_total_bytes = 15;
  EXPECT_TRUE(CheckFiles({{"a", "1234567890"}, {"b", "12345"}}, config));
  EXPECT_THAT(CheckFiles({}, config).error().message(), HasSubstr("no files"));
  EXPECT_THAT(CheckFiles({{"a", ""}, {"b", ""}, {"c", ""}}, config).error().message(),
              HasSubstr("at most 2"));
  EXPECT_THAT(CheckFiles({{"a", "12345678901"}}, config).error().message(),
              HasSubstr("at most 10"));
  EXPECT_THAT(CheckFiles({{"a", "1234567890"}, {"b", "123456"}}, config).error().message(),
              HasSubstr("at most 15"));
}

TEST(CheckFiles, AFileIsNoDirectory) {
  Config config;
  EXPECT_FALSE(CheckFiles({{"a", ""}, {"a/b", ""}}, config));
  EXPECT_FALSE(CheckFiles({{"a/b", ""}, {"a/b/c/d", ""}, {"a/b-c", ""}}, config));
  EXPECT_TRUE(CheckFiles({{"a", ""}, {"a-b", ""}, {"ab/c", ""}}, config));
  EXPECT_FALSE(CheckFiles({{"../a", ""}}, config));
}

TEST(CheckFiles, JavaScriptNeedsAPackage) {
  Config config;
  EXPECT_THAT(CheckFiles({{"src/index.js", ""}}, config).error().message(),
              HasSubstr("no package.json"));
  EXPECT_FALSE(CheckFiles({{"src/App.tsx", ""}, {"index.html", ""}}, config));
  EXPECT_TRUE(CheckFiles({{"src/App.tsx", ""}, {"package.json", "{}"}}, config));
}

TEST(CheckFiles, ScriptsOfPagesAndOtherServersDoNot) {
  Config config;
  EXPECT_TRUE(CheckFiles({{"app.js", ""}, {"index.html", ""}}, config));
  EXPECT_TRUE(CheckFiles({{"static/app.js", ""}, {"app.py", ""}}, config));
  EXPECT_TRUE(CheckFiles({{"app.py", ""}, {"requirements.txt", ""}}, config));
  EXPECT_TRUE(CheckFiles({{"web/app.js", ""}, {"go.mod", ""}, {"main.go", ""}}, config));
}

TEST(Apply, WritesAndDeletes) {
  auto files = Apply({{"a", "1"}, {"b", "2"}}, {{"a", "new"}, {"b", {}}, {"c", ""}, {"d", {}}});
  ASSERT_TRUE(files);
  EXPECT_EQ(*files, (Files{{"a", "new"}, {"c", ""}}));
  EXPECT_FALSE(Apply({}, {{"../x", "1"}}));
  EXPECT_FALSE(Apply({}, {{"/x", {}}}));
}

}  // namespace
}  // namespace caisson::build
