#include "base/text.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, TrimAndCase) {
  EXPECT_EQ(Trim(" \ta b\r\n"), "a b");
  EXPECT_TRUE(EqualsIgnoreCase("Content-TYPE", "content-type"));
  EXPECT_FALSE(EqualsIgnoreCase("a", "ab"));
}

TEST(Text, NumbersAreWhole) {
  EXPECT_EQ(ParseInt<int>("42"), 42);
  EXPECT_FALSE(ParseInt<int>("42x"));
  EXPECT_FALSE(ParseInt<int>(""));
  EXPECT_FALSE(ParseInt<int>("99999999999"));
}

TEST(Text, DurationsAndSizes) {
  EXPECT_EQ(ParseDurationMs("5m"), 300'000);
  EXPECT_EQ(ParseDurationMs("250ms"), 250);
  EXPECT_EQ(ParseDurationMs("7"), 7000);
  EXPECT_FALSE(ParseDurationMs("-1s"));
  EXPECT_EQ(ParseSize("10G"), int64_t{10} << 30);
  EXPECT_FALSE(ParseSize("9999999999G"));
}

TEST(Text, BytesThatAreNotUtf8AreRepaired) {
  EXPECT_EQ(ToUtf8("plain ä €  😀"), "plain ä €  😀");
  EXPECT_EQ(ToUtf8("a\xff"), "a\xEF\xBF\xBD");
  EXPECT_EQ(ToUtf8("\xc3"), "\xEF\xBF\xBD");
  EXPECT_EQ(ToUtf8("\xed\xa0\x80").size(), 9u);  // a surrogate
  EXPECT_EQ(ToUtf8("\xc0\x80").size(), 6u);      // an overlong NUL
}

}  // namespace
}  // namespace caisson
