#include "build/llm_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "build/llm_prompt.h"

namespace caisson::build {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LlmAnswer, IsOneObject) {
  std::string plain = R"({"changes":[{"path":"a","new_content":"x"}],"note":"done"})";
  for (std::string text : {plain, "  " + plain + "\n", "```json\n" + plain + "\n```",
                           "```\n" + plain + "```", "```" + plain + "```"}) {
    auto answer = ReadAnswer(text);
    ASSERT_TRUE(answer) << text;
    EXPECT_EQ(answer->changes.at(0).new_content, "x");
    EXPECT_EQ(answer->note, "done");
  }
  EXPECT_EQ(ReadAnswer(R"({"changes":[{"path":"a","delete":true}],"note":7})").value().note, "");
}

TEST(LlmAnswer, AnythingElseIsExplained) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& one :
       {Case{"", "not JSON"}, Case{"Sure! Here it is.", "not JSON"}, Case{"```", "not JSON"},
        Case{R"({"changes":[)", "not JSON"}, Case{"[]", "\"changes\""}, Case{"{}", "\"changes\""},
        Case{R"({"changes":{"a":"x"}})", "\"changes\""}, Case{R"({"changes":[]})", "empty"},
        Case{R"({"changes":[{"path":"a","content":"x"}]})", "named \"new_content\""},
        Case{R"({"changes":[{"path":"../a","new_content":"x"}]})", "\"..\""},
        Case{R"({"changes":["a"]})", "must be an object"}}) {
    auto answer = ReadAnswer(one.text);
    ASSERT_FALSE(answer) << one.text;
    EXPECT_EQ(answer.error().code(), Code::kDataLoss) << one.text;
    EXPECT_THAT(answer.error().message(), HasSubstr(one.message));
  }
}

TEST(LlmPrompt, TellsGoalFilesAndFailure) {
  RunnerJob job{.goal = "a page about ships"};
  std::string first = boost::json::serialize(FirstMessages(job));
  EXPECT_THAT(first, HasSubstr("a page about ships"));
  EXPECT_THAT(first, HasSubstr("new_content"));
  EXPECT_THAT(first, Not(HasSubstr("failed")));
  job.files = {{"index.html", "<h1>Boats</h1>"}};
  job.failure = "The type check found an error";
  std::string second = boost::json::serialize(FirstMessages(job));
  EXPECT_THAT(second, HasSubstr("Boats"));
  EXPECT_THAT(second, HasSubstr("The type check found an error"));
}

TEST(LlmPrompt, IsBounded) {
  RunnerJob job{.goal = "x", .failure = std::string(1 << 20, 'f')};
  for (int i = 0; i < 50; ++i) job.files[fmt::format("file{}.txt", i)] = std::string(50'000, 'c');
  std::string prompt = boost::json::serialize(FirstMessages(job));
  EXPECT_LT(prompt.size(), 500'000u);
  EXPECT_THAT(prompt, HasSubstr("file49.txt"));
}

}  // namespace
}  // namespace caisson::build
