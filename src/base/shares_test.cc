#include "base/shares.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Shares, AFewWhoTakeAllTheyCanLeaveRoomForOthers) {
  constexpr size_t kPlaces = 1000;
  Shares<int> shares(kPlaces);
  for (int round = 0; round < 1000; ++round)
    for (int hog = 0; hog < 16; ++hog) (void)shares.Take(hog);
  EXPECT_LT(shares.taken(), kPlaces * 3 / 4);
  int newcomers = 0;
  for (int who = 100; shares.Take(who); ++who) ++newcomers;
  EXPECT_GT(newcomers, 250);
  EXPECT_EQ(shares.taken(), kPlaces);
  EXPECT_FALSE(shares.Take(1000));
  // The first place that is free is not for who has many.
  shares.GiveBack(100);
  EXPECT_FALSE(shares.Take(0));
  EXPECT_TRUE(shares.Take(1000));
}

TEST(Shares, AloneOneHasMany) {
  Shares<int> shares(900);
  size_t own = 0;
  while (shares.Take(1)) ++own;
  EXPECT_EQ(own, 100u);
  while (own-- > 0) shares.GiveBack(1);
  EXPECT_EQ(shares.taken(), 0u);
}

}  // namespace
}  // namespace caisson
