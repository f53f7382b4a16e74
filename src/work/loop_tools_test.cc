#include "work/loop_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/testing.h"
#include "work/json_fields.h"
#include "work/loop_plan.h"
#include "work/loop_text.h"

namespace caisson::work {
namespace {

using ::testing::HasSubstr;

TEST(ToolPath, StaysInTheCheckout) {
  EXPECT_EQ(ToolPath("/w/garden", "a/b.txt").value(), "/w/garden/a/b.txt");
  EXPECT_EQ(ToolPath("/w/garden", ".").value(), "/w/garden");
  EXPECT_EQ(ToolPath("/w/garden", "a/../b").value(), "/w/garden/b");
  EXPECT_EQ(ToolPath("/w/garden", "/w/garden//x/./y").value(), "/w/garden/x/y");
  EXPECT_EQ(ToolPath("/w/garden", "/tmp/out").value(), "/tmp/out");
  for (std::string path :
       {"", "..", "../garden2/x", "a/../../x", "/etc/passwd", "/w/gardener/x", "/tmp/../etc/passwd",
        "/w/garden/../../etc/x", "../../../../../..", "/tmpfile", "a\xff", "/"})
    EXPECT_EQ(ToolPath("/w/garden", path).error().code(), Code::kInvalidArgument) << path;
  EXPECT_FALSE(ToolPath("/w/garden", std::string("a\0b", 3)));
}

TEST(Glob, MatchesNamesAndFolders) {
  struct Case {
    const char *pattern, *path;
    bool matches;
  };
  for (const Case& one :
       {Case{"*.cc", "src/a.cc", true}, Case{"src/*.cc", "src/a.cc", true},
        Case{"src/*.cc", "src/b/a.cc", false}, Case{"src/**/*.cc", "src/a.cc", true},
        Case{"src/**/*.cc", "src/b/c/a.cc", true}, Case{"**", "a/b", true}, Case{"**/a", "a", true},
        Case{"a?c", "abc", true}, Case{"x/a?c", "x/a/c", false}, Case{"", "a", false},
        Case{"*", "x/y", true}, Case{"a/**", "b/c", false}})
    EXPECT_EQ(MatchesGlob(one.pattern, one.path), one.matches) << one.pattern << " " << one.path;
  // One that would take years if it were tried in all ways.
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  EXPECT_FALSE(MatchesGlob(stars + "b", std::string(2'000, 'a')));
}

TEST(ReplaceOnce, NeedsExactlyOne) {
  EXPECT_EQ(ReplaceOnce("one two", "two", "three").value(), "one three");
  EXPECT_EQ(ReplaceOnce("one two", " two", "").value(), "one");
  EXPECT_THAT(ReplaceOnce("one", "two", "x").error().message(), HasSubstr("does not occur"));
  EXPECT_THAT(ReplaceOnce("aaa", "aa", "x").error().message(), HasSubstr("more than once"));
  EXPECT_FALSE(ReplaceOnce("one", "", "x"));
}

TEST(LinesOf, TakesAPart) {
  EXPECT_EQ(LinesOf("a\nb\nc\n", 0, 0), "a\nb\nc\n");
  EXPECT_EQ(LinesOf("a\nb\nc\n", 2, 1), "b\n");
  EXPECT_EQ(LinesOf("a\nb\nc", 3, 9), "c");
  EXPECT_EQ(LinesOf("a\nb", 9, 1), "");
}

TEST(Tools, AreNine) {
  std::vector<std::string> names;
  for (const json::value& tool : ToolDefinitions())
    names.push_back(TextOf(ObjectIn(tool.as_object(), "function"), "name"));
  EXPECT_THAT(names, ::testing::ElementsAre("read_file", "write_file", "edit_file", "bash", "grep",
                                            "glob", "take_screenshot", "narrate", "update_plan"));
}

TEST(Plan, IsReadOrRefused) {
  auto read = [](std::string_view text) { return ReadPlan(json::parse(text).as_object()); };
  auto plan = read(R"({"steps":[{"title":"a","status":"completed","files_to_modify":["src/a.cc"]},
                                {"title":"b","status":"in_progress","more":1}]})");
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(json::serialize(*plan),
            R"([{"title":"a","status":"completed","files_to_modify":["src/a.cc"]},)"
            R"({"title":"b","status":"in_progress","files_to_modify":[]}])");
  for (const char* bad :
       {R"({})", R"({"steps":[]})", R"({"steps":"all"})", R"({"steps":[1]})",
        R"({"steps":[{"status":"failed"}]})", R"({"steps":[{"title":"a"}]})",
        R"({"steps":[{"title":"a","status":"done"}]})",
        R"({"steps":[{"title":"a","status":"pending","files_to_modify":["/etc/passwd"]}]})",
        R"({"steps":[{"title":"a","status":"pending","files_to_modify":["../x"]}]})",
        R"({"steps":[{"title":"a","status":"pending","files_to_modify":[""]}]})"})
    EXPECT_EQ(read(bad).error().code(), Code::kInvalidArgument) << bad;
}

// Without a sandbox: what is wrong is found before one is asked.
TEST(Tools, RefuseWrongArguments) {
  asio::io_context io;
  sdk::EnvdClient nowhere;
  sdk::Command like;
  like.cwd = "/w/garden";
  LoopTools tools(nowhere, like, {}, "tag");
  struct Case {
    const char *name, *arguments, *words;
  };
  for (const Case& one :
       {Case{"bash", "{", "no JSON object"}, Case{"bash", "[]", "no JSON object"},
        Case{"bash", "", "needs the text 'command'"},
        Case{"bash", R"({"command":["ls"]})", "needs the text 'command'"},
        Case{"rm", "{}", "no tool 'rm'"},
        Case{"read_file", R"({"path":"../../etc/shadow"})", "neither in"},
        Case{"write_file", R"({"path":"/etc/passwd","content":"x"})", "neither in"},
        Case{"edit_file", R"({"path":"/proc/1/mem","old":"a","new":"b"})", "neither in"},
        Case{"grep", R"({"pattern":"x","path":"/root"})", "neither in"},
        Case{"take_screenshot", R"({"url":"file:///etc/passwd"})", "http://"}}) {
    auto outcome =
        testing::Await(io, tools.Run({.id = "c", .name = one.name, .arguments = one.arguments},
                                     std::chrono::seconds(60)));
    ASSERT_TRUE(outcome) << one.name << one.arguments;
    EXPECT_FALSE(outcome->error_type.empty());
    EXPECT_THAT(outcome->text, HasSubstr(one.words));
  }
  auto said = testing::Await(
      io, tools.Run({.id = "c", .name = "narrate", .arguments = R"({"message":"I look."})"},
                    std::chrono::seconds(60)));
  EXPECT_EQ(said->said, "I look.");
}

}  // namespace
}  // namespace caisson::work
