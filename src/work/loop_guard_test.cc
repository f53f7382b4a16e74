#include "work/loop_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "work/json_fields.h"
#include "work/loop_text.h"

namespace caisson::work {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

ToolCall Call(int number, std::string name = "bash") {
  return {.id = "c",
          .name = std::move(name),
          .arguments = fmt::format(R"({{"command":"make {}"}})", number)};
}

TEST(LoopLimits, HaveDefaults) {
  LoopLimits limits = LimitsOf({});
  EXPECT_EQ(limits.tool_calls, 150);
  EXPECT_EQ(limits.repeats, 3);
  EXPECT_EQ(limits.failures, 3);
  EXPECT_EQ(limits.tool_timeout, std::chrono::seconds(30));
  limits = LimitsOf({{"max_tool_calls", 20}, {"tool_timeout_s", 900}, {"max_dollars", 0.5}});
  EXPECT_EQ(limits.tool_calls, 20);
  EXPECT_EQ(limits.bash_timeout, std::chrono::seconds(900));
  EXPECT_EQ(limits.dollars, 0.5);
}

TEST(LoopGuard, CountsCalls) {
  LoopGuard guard({.tool_calls = 4}, {});
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(guard.Before(Call(i)));
  auto stop = guard.Before(Call(4));
  ASSERT_TRUE(stop);
  EXPECT_THAT(stop->problem, HasSubstr("4 tool calls"));
  EXPECT_THAT(stop->tried, ElementsAre("bash make 0", "bash make 1", "bash make 2", "bash make 3"));
  EXPECT_FALSE(stop->recommended_action.empty());
}

TEST(LoopGuard, StopsTheThirdOfTheSameCallInTen) {
  LoopGuard guard({}, {});
  EXPECT_FALSE(guard.Before(Call(1)));
  EXPECT_FALSE(guard.Before(Call(2)));
  EXPECT_FALSE(guard.Before(Call(1)));
  EXPECT_TRUE(guard.Before(Call(1)));
  LoopGuard patient({}, {});
  for (int round = 0; round < 3; ++round)  // the first is forgotten when the third comes
    for (int i = 0; i < 6; ++i) EXPECT_FALSE(patient.Before(Call(i))) << round << " " << i;
}

TEST(LoopGuard, StopsAfterFailuresInARow) {
  LoopGuard guard({.tries = 100}, {});
  auto fail = [](std::string error) {
    return ToolOutcome{.error_type = "timeout", .error = std::move(error)};
  };
  EXPECT_FALSE(guard.After(Call(1), fail("a")));
  EXPECT_FALSE(guard.After(Call(2), fail("b")));
  EXPECT_FALSE(guard.After(Call(3), {.text = "fine"}));
  EXPECT_FALSE(guard.After(Call(4), fail("c")));
  EXPECT_FALSE(guard.After(Call(5), fail("d")));
  EXPECT_TRUE(guard.After(Call(6), fail("e")));
}

TEST(LoopGuard, CountsDifferentTriesPerErrorOverRestarts) {
  ToolOutcome broken{.error_type = "exit", .error = "line 7: undefined symbol"};
  LoopGuard first({}, {});
  EXPECT_FALSE(first.After(Call(1), broken));
  EXPECT_FALSE(first.After(Call(1), broken));  // the same try
  EXPECT_FALSE(first.After(Call(9), {.text = "fine"}));
  broken.error = "line 12: undefined symbol";
  EXPECT_FALSE(first.After(Call(2), broken));
  std::string kept = json::serialize(first.state());
  LoopGuard second({}, ParseObject(kept));
  auto stop = second.After(Call(3), broken);
  ASSERT_TRUE(stop);
  EXPECT_THAT(stop->problem, HasSubstr(ErrorSignature("exit", broken.error)));
}

TEST(LoopGuard, TakesSilentEndsAsAnswers) {
  LoopGuard guard({}, {});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(guard.After(Call(i), {.error_type = "exit"}));
}

TEST(LoopGuard, StopsWhenTheMoneyIsSpent) {
  LoopGuard guard({.dollars = 1, .price_in = 2, .price_out = 10}, {});
  guard.Count(100'000, 50'000);
  EXPECT_DOUBLE_EQ(guard.DollarsOf(100'000, 50'000), 0.7);
  EXPECT_FALSE(guard.CheckMoney());
  guard.Count(0, 50'000);
  EXPECT_TRUE(guard.CheckMoney());
}

TEST(LoopGuard, RemembersLittleAndNoContent) {
  LoopGuard guard({.tool_calls = 10'000, .failures = 10'000, .tries = 10'000}, {});
  for (int i = 0; i < 1'000; ++i) {
    ToolCall call{.name = "write_file",
                  .arguments = fmt::format(R"({{"path":"a{}","content":"secret words"}})", i)};
    EXPECT_FALSE(guard.Before(call));
    std::string kind(static_cast<size_t>(i), 'x');
    EXPECT_FALSE(guard.After(call, {.error_type = "exit", .error = kind}));
  }
  std::string state = json::serialize(guard.state());
  EXPECT_LT(state.size(), 20'000u);
  EXPECT_THAT(state, Not(HasSubstr("secret words")));
}

TEST(CutResult, KeepsBothEnds) {
  EXPECT_EQ(CutResult("short"), "short");
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += fmt::format("line {}\n", i);
  std::string cut = CutResult(text);
  EXPECT_THAT(cut, ::testing::StartsWith("line 0\n"));
  EXPECT_THAT(cut, ::testing::EndsWith("line 9999\n"));
  EXPECT_THAT(cut, ::testing::ContainsRegex("\\[9[0-9]+ lines omitted\\]"));
  EXPECT_THAT(cut, SizeIs(::testing::Lt(4'100u)));
}

TEST(CutResult, LeavesCharactersWhole) {
  std::string text;
  for (int i = 0; i < 3'000; ++i) text += "ä€";
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string cut = CutResult(std::string(shift, 'x') + text);
    EXPECT_THAT(cut, HasSubstr("[1 lines omitted]"));
    EXPECT_THAT(cut, Not(HasSubstr("\xc3\n")));
    EXPECT_THAT(cut, Not(HasSubstr("\n\xa4")));
  }
}

TEST(ErrorSignature, IgnoresNumbers) {
  EXPECT_EQ(ErrorSignature("exit", "at 12:7"), ErrorSignature("exit", " at 3:99\n"));
  EXPECT_NE(ErrorSignature("exit", "at 12"), ErrorSignature("timeout", "at 12"));
  EXPECT_NE(ErrorSignature("exit", "no file"), ErrorSignature("exit", "no memory"));
  EXPECT_THAT(ErrorSignature("exit", ""), ::testing::StartsWith("exit:"));
}

}  // namespace
}  // namespace caisson::work
