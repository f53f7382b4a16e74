#include "cli/table.h"

#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

TEST(Table, ColumnsAlign) {
  EXPECT_EQ(FormatTable({"ID", "NAME"}, {{"i1", "a"}, {"i22222", ""}}),
            "ID      NAME\n"
            "i1      a\n"
            "i22222\n");
}

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(FormatTable({"A", "B"}, {{"ää", "1"}, {"xyz", "2"}}),
            "A    B\n"
            "ää   1\n"
            "xyz  2\n");
}

TEST(Table, StrangersDoNotSteerTheTerminal) {
  EXPECT_EQ(Printable("a\033[2Jb\nc\x7f"), "a?[2Jb?c?");
}

TEST(Table, Durations) {
  EXPECT_EQ(FormatDuration(-5), "0s");
  EXPECT_EQ(FormatDuration(59), "59s");
  EXPECT_EQ(FormatDuration(185), "3m 5s");
  EXPECT_EQ(FormatDuration(7620), "2h 7m");
  EXPECT_EQ(FormatDuration(349'200), "4d 1h");
}

TEST(Table, Bytes) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 30), "3.0 GB");
}

}  // namespace
}  // namespace caisson::cli
