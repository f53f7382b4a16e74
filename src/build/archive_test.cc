#include "build/archive.h"

#include <gtest/gtest.h>

namespace caisson::build {
namespace {

TEST(Archive, TheSameFilesGiveTheSameBytes) {
  auto make = [](const std::string& content) {
    Archive archive(Time{});
    std::string bytes = archive.Add("a/" + std::string(200, 'b'), content);
    return bytes + archive.Finish();
  };
  EXPECT_EQ(make("text"), make("text"));
  EXPECT_NE(make("text"), make("other"));
  EXPECT_TRUE(make("").starts_with("\x1f\x8b"));
}

}  // namespace
}  // namespace caisson::build
