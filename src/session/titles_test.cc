#include "session/titles.h"

#include <gtest/gtest.h>

namespace caisson::session {
namespace {

TEST(Title, IsTheFirstLineOfTheMessage) {
  EXPECT_EQ(WordsOf("  Mend the login\nIt fails."), "Mend the login");
  EXPECT_EQ(WordsOf(" \n "), kUntitled);
  EXPECT_EQ(WordsOf(std::string(100, 'x')), std::string(70, 'x') + "…");
}

TEST(Title, OfAModelIsOneCleanLine) {
  EXPECT_EQ(CleanTitle("Mend the login"), "Mend the login");
  EXPECT_EQ(CleanTitle("\n\n**\"Mend the login.\"**\n\nHere is why"), "Mend the login");
  EXPECT_EQ(CleanTitle("# Mend\tthe   login\r\n"), "Mend the login");
  EXPECT_EQ(CleanTitle("<think>What is\nit?</think>\nMend it"), "Mend it");
  EXPECT_EQ(CleanTitle("a\x1b[31mred\x07"), "a [31mred");
  EXPECT_EQ(CleanTitle(""), "");
  EXPECT_EQ(CleanTitle(" \"\" \n ** \n"), "");
  EXPECT_EQ(CleanTitle("\xff\xfe"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  std::string cut = CleanTitle(std::string(79, 'x') + "ü and more");
  EXPECT_EQ(cut, std::string(79, 'x') + "…");
}

}  // namespace
}  // namespace caisson::session
