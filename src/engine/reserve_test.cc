#include "engine/reserve.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

constexpr size_t kPage = 2 << 20;
constexpr size_t kMost = 8 * kPage;

// What this process has in memory.
size_t Resident() {
  auto text = ReadFile("/proc/self/statm");
  return text ? ParseInt<size_t>(Split(*text, ' ').at(1)).value_or(0) * 4096 : 0;
}

TEST(ReserveTest, NothingIsTakenBeforeItIsWanted) {
  Reserve reserve(kMost);
  EXPECT_FALSE(reserve.Refill());
  reserve.Give(kPage);
  EXPECT_EQ(reserve.held(), 0u);
}

TEST(ReserveTest, TakesPageByPageAndGivesWhatIsAskedFor) {
  Reserve reserve(kMost + 5);
  size_t before = Resident();
  reserve.Want();
  size_t pages = 0;
  while (reserve.Refill()) ++pages;
  EXPECT_EQ(pages, 8u);
  EXPECT_EQ(reserve.held(), kMost);
  EXPECT_GE(Resident(), before + kMost);
  reserve.Give(2 * kPage - 1);
  EXPECT_EQ(reserve.held(), kMost - 2 * kPage);
  EXPECT_LT(Resident(), before + kMost);
  reserve.Give(100 * kPage);
  EXPECT_EQ(reserve.held(), 0u);
  EXPECT_LT(Resident(), before + kPage);
  EXPECT_TRUE(reserve.Refill());
  EXPECT_EQ(reserve.held(), kPage);
}

TEST(ReserveTest, WithoutRoomThereIsNone) {
  Reserve reserve(kPage - 1);
  reserve.Want();
  EXPECT_FALSE(reserve.Refill());
  Reserve huge(size_t{1} << 44);  // more than a machine has to spare
  huge.Want();
  EXPECT_FALSE(huge.Refill());
}

}  // namespace
}  // namespace caisson::engine
