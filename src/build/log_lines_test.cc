#include "build/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace caisson::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kMax = 100;

std::vector<LogLine> Lines(const std::vector<std::string_view>& pieces, size_t max = kMax) {
  events::Redactor redactor;
  redactor.Add("the-servers-own-secret");
  LogLines lines(redactor, max);
  std::vector<LogLine> all;
  for (std::string_view piece : pieces)
    for (LogLine& line : lines.Feed(piece)) all.push_back(std::move(line));
  for (LogLine& line : lines.Finish()) all.push_back(std::move(line));
  return all;
}

std::vector<std::string> Texts(const std::vector<std::string_view>& pieces, size_t max = kMax) {
  std::vector<std::string> texts;
  for (const LogLine& line : Lines(pieces, max)) texts.push_back(line.text);
  return texts;
}

TEST(LogLines, AreWhole) {
  EXPECT_THAT(Texts({"one\ntw", "o\n\nthr", "ee"}), ElementsAre("one", "two", "", "three"));
  EXPECT_THAT(Texts({"a\r", "\nb\r\r\nc"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Texts({}), ElementsAre());
  EXPECT_THAT(Texts({"", "\n"}), ElementsAre(""));
}

TEST(LogLines, ACarriageReturnBeginsAnew) {
  EXPECT_THAT(Texts({"10%\r50%\r", "100%\ndone"}), ElementsAre("100%", "done"));
  EXPECT_THAT(Texts({"10%\r20%\r"}), ElementsAre("20%"));
}

TEST(LogLines, ColoursAreKeptApart) {
  auto lines = Lines({"\x1b[1;32mready\x1b[0m in 3 ms\x1b[2K\x1b]0;title\a\nplain"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "ready in 3 ms");
  EXPECT_EQ(lines[0].raw, "\x1b[1;32mready\x1b[0m in 3 ms");
  EXPECT_EQ(lines[1].raw, "");
}

TEST(LogLines, AnyCutGivesTheSameLines) {
  std::string output =
      "\x1b[33mwarn\x1b[39m ü€😀 done\r\n10%\r\x1b[2K100%\rAPI_TOKEN=abcdef123456\nthe-servers-own"
      "-secret\r\n\xff\xc3\n" +
      std::string(1'500, 'x') + " the-servers-own-secret\nend";
  std::vector<std::string> whole = Texts({output}, 20);
  for (size_t first = 0; first <= output.size(); ++first) {
    std::string_view all(output);
    EXPECT_EQ(Texts({all.substr(0, first), all.substr(first)}, 20), whole) << first;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string_view> pieces;
    for (std::string_view rest = output; !rest.empty();) {
      pieces.push_back(rest.substr(0, 1 + random() % 9));
      rest.remove_prefix(pieces.back().size());
    }
    EXPECT_EQ(Texts(pieces, 20), whole);
  }
}

TEST(LogLines, LongOnesAreCutByCharacters) {
  EXPECT_THAT(Texts({"12345\n123456\nüüüüüü\n"}, 5), ElementsAre("12345", "12345…", "üüüüü…"));
  auto lines = Lines({std::string(1 << 20, 'x')}, 2'000);
  EXPECT_EQ(lines.at(0).text.size(), 2'000 + 3u);
  // Colours only: longer than what is kept, yet short.
  std::string colours;
  for (int i = 0; i < 10'000; ++i) colours += "\x1b[31m";
  EXPECT_EQ(Lines({colours + "x\n"}).at(0).text, "…");
}

TEST(LogLines, ASecretAtTheCutIsNotShownInPart) {
  for (size_t before = 0; before < 12'000; before += 7) {
    std::string line = std::string(before, '\x01') + " the-servers-own-secret";
    EXPECT_THAT(Texts({line}).at(0), Not(HasSubstr("the-serv"))) << before;
  }
  for (size_t before = 0; before < kMax; ++before)
    EXPECT_THAT(Texts({std::string(before, ' ') + "the-servers-own-secret"}).at(0),
                Not(HasSubstr("the-serv")));
}

TEST(LogLines, ColoursDoNotHideSecrets) {
  auto line = Lines({"key the-servers\x1b[31m-own-secret and sk-abc\x1b[0mdef12345"}).at(0);
  EXPECT_EQ(line.text, "key *** and [redacted]");
  EXPECT_EQ(line.raw, "");
}

TEST(StripAnsi, LeavesText) {
  EXPECT_EQ(StripAnsi("\x1b[38;2;1;2;3mred\x1b[m\x1b(B \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"),
            "red link");
  EXPECT_EQ(StripAnsi("a\tb\nc\bd\x7f"), "a\tb\ncd");
  EXPECT_EQ(StripAnsi("x\x1b"), "x");
  EXPECT_EQ(StripAnsi("x\x1b["), "x");
  EXPECT_EQ(StripAnsi("\x1b]0;no end"), "0;no end");
  EXPECT_EQ(StripAnsi("\xc2\x9b"
                      "31mx"),
            "31mx");
  EXPECT_EQ(StripAnsi("\x9bx"), "\xEF\xBF\xBDx");
}

TEST(RedactPatterns, CutsSecrets) {
  struct Case {
    const char* text;
    const char* clean;
  };
  for (const Case& one : {
           Case{"API_KEY=abc123", "API_KEY=[redacted]"},
           Case{"export DB_PASSWORD='hunter 2' x", "export DB_PASSWORD='[redacted]' x"},
           Case{"{\"access_token\": \"abc\", \"a\": 1}",
                "{\"access_token\": \"[redacted]\", \"a\": 1}"},
           Case{"clientSecret = \"abc\";", "clientSecret = \"[redacted]\";"},
           Case{"GET /?token=abc&x=1", "GET /?token=[redacted]&x=1"},
           Case{"STRIPE_KEY=x", "STRIPE_KEY=[redacted]"},
           Case{"use sk-abcdefgh1234 now", "use [redacted] now"},
           Case{"sk-proj-AAAAbbbb1111", "[redacted]"},
           Case{"pk_live_abcdefgh pk_test_abcdefgh", "[redacted] [redacted]"},
           Case{"ghp_0123456789abcdefABCD", "[redacted]"},
           Case{"(AKIAIOSFODNN7EXAMPLE)", "([redacted])"},
           Case{"postgres://app:pa/ss@db:5432/x", "postgres://app:[redacted]@db:5432/x"},
           Case{"redis://:secret@cache:6379", "redis://:[redacted]@cache:6379"},
           Case{"mongodb+srv://u:p@h/d?x=1", "mongodb+srv://u:[redacted]@h/d?x=1"},
           Case{"https://abcdef@host/x", "https://[redacted]@host/x"},
           Case{"Authorization: Bearer abc.def-123", "Authorization: [redacted]"},
       }) {
    EXPECT_EQ(RedactPatterns(one.text), one.clean);
    EXPECT_EQ(RedactPatterns(one.clean), one.clean);
  }
}

TEST(RedactPatterns, LongTokensGoAsAWhole) {
  EXPECT_EQ(RedactPatterns("x eyJ" + std::string(5'000, 'a') + " y"), "x [redacted] y");
  EXPECT_EQ(RedactPatterns("sk-1" + std::string(5'000, 'a')), "[redacted]");
}

TEST(RedactPatterns, LeavesOrdinaryText) {
  for (const char* text :
       {"SyntaxError: Unexpected token: '<'", "PWD=/home/user", "if (token == other) x",
        "max_tokens=16000", "key=1", "monkey=banana", "https://host/a@b",
        "git clone git://git@host", "task-list sk-toggleable", "risk-free", "password => x",
        "Bearer authentication required", "Local: http://localhost:5173/", "API_KEY=", "AKIA",
        "a=b"})
    EXPECT_EQ(RedactPatterns(text), text);
}

}  // namespace
}  // namespace caisson::build
