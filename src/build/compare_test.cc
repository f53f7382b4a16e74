#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "build/file_change.h"
#include "build/line_diff.h"

namespace caisson::build {
namespace {

using ::testing::EndsWith;

TEST(Compare, TellsWhatChanged) {
  auto differences = Compare({{"gone", "1\n2\n"}, {"same", "x"}, {"there", "a\nb\n"}},
                             {{"new", "1\n"}, {"same", "x"}, {"there", "a\nc\nd\n"}});
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].path, "gone");
  EXPECT_EQ(differences[0].change, "deleted");
  EXPECT_EQ(differences[0].deletions, 2);
  EXPECT_EQ(differences[0].patch, "--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n");
  EXPECT_EQ(differences[1].change, "added");
  EXPECT_EQ(differences[1].patch, "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n");
  EXPECT_EQ(differences[2].change, "modified");
  EXPECT_EQ(differences[2].additions, 2);
  EXPECT_EQ(differences[2].deletions, 1);
  EXPECT_TRUE(Compare({{"a", "1"}}, {{"a", "1"}}).empty());
}

TEST(Compare, WritesUnifiedPatches) {
  std::string before, after;
  for (int i = 1; i <= 30; ++i) before += fmt::format("{}\n", i);
  for (int i = 1; i <= 30; ++i)
    if (i != 5) after += i == 25 ? "25!\n" : fmt::format("{}\n", i);
  auto differences = Compare({{"f", before}}, {{"f", after}});
  EXPECT_EQ(differences.at(0).patch,
            "--- a/f\n+++ b/f\n"
            "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n"
            "@@ -22,7 +21,7 @@\n 22\n 23\n 24\n-25\n+25!\n 26\n 27\n 28\n");
}

TEST(Compare, SaysWhereALineHasNoEnd) {
  EXPECT_EQ(Compare({{"f", "a"}}, {{"f", "a\n"}}).at(0).patch,
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
}

TEST(Compare, WhatIsNoTextHasNoPatch) {
  auto differences =
      Compare({{"f", std::string("\0\1", 2)}, {"g", "a"}}, {{"f", "a"}, {"g", "\xff"}});
  ASSERT_EQ(differences.size(), 2u);
  for (const FileDifference& file : differences) {
    EXPECT_EQ(file.change, "modified");
    EXPECT_EQ(file.patch, "");
  }
}

TEST(Compare, CutsLongPatches) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += fmt::format("line {}\n", i);
  FileDifference file = Compare({}, {{"f", lines}}).at(0);
  EXPECT_EQ(file.additions, 20'000);
  EXPECT_LT(file.patch.size(), 66'000u);
  EXPECT_THAT(file.patch, EndsWith("\\ The rest is not shown.\n"));
  Files many;
  for (int i = 0; i < 200; ++i) many[fmt::format("f{}", i)] = lines;
  size_t total = 0;
  for (const FileDifference& one : Compare({}, many)) total += one.patch.size();
  EXPECT_LT(total, 5u << 20);
}

// The edits lead from one text to the other, whatever the budget.
void CheckEdits(const std::vector<LineEdit>& edits, const std::string& before,
                const std::string& after) {
  std::string a, b;
  for (const LineEdit& edit : edits) {
    if (edit.kind != '+') a += edit.line;
    if (edit.kind != '-') b += edit.line;
  }
  EXPECT_EQ(a, before);
  EXPECT_EQ(b, after);
}

size_t LongestCommon(const std::vector<std::string_view>& a,
                     const std::vector<std::string_view>& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t k = 1; k <= b.size(); ++k)
      best[i][k] =
          a[i - 1] == b[k - 1] ? best[i - 1][k - 1] + 1 : std::max(best[i - 1][k], best[i][k - 1]);
  return best[a.size()][b.size()];
}

TEST(DiffLines, FindsTheFewestEdits) {
  std::mt19937 random(7);
  for (int round = 0; round < 2'000; ++round) {
    auto text = [&] {
      std::string lines;
      for (size_t n = random() % 15; n > 0; --n)
        lines += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      return lines;
    };
    std::string before = text(), after = text();
    int64_t budget = 1'000'000;
    auto edits = DiffLines(before, after, budget);
    CheckEdits(edits, before, after);
    auto same = std::ranges::count(edits, ' ', &LineEdit::kind);
    EXPECT_EQ(static_cast<size_t>(same), LongestCommon(SplitLines(before), SplitLines(after)))
        << before << "--\n"
        << after;
  }
}

TEST(DiffLines, GivesUpWhenItCostsTooMuch) {
  std::string before = "first\n", after = "first\n";
  for (int i = 0; i < 5'000; ++i) {
    before += fmt::format("{}\n", i * 2);
    after += fmt::format("{}\n", i * 2 + 1);
  }
  for (int64_t budget : {0, 10, 100'000'000}) {
    auto edits = DiffLines(before, after, budget);
    CheckEdits(edits, before, after);
    EXPECT_EQ(edits.size(), 10'001u);
  }
}

}  // namespace
}  // namespace caisson::build
