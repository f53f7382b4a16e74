#include "base/time.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Time, RoundTripsWithNanoseconds) {
  for (const char* text :
       {"2026-11-15T09:04:16.123456789Z", "1999-12-31T23:59:59Z", "2026-02-28T00:00:00.5Z"}) {
    auto time = ParseTime(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(FormatTime(*time), text);
  }
}

TEST(Time, ReadsOffsets) {
  EXPECT_EQ(FormatTime(ParseTime("2026-01-01T01:30:00+02:00").value()), "2025-12-31T23:30:00Z");
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00", "2026-01-01T00:00:00Zx", "2026-01-01T00:00:00+99:00"})
    EXPECT_FALSE(ParseTime(text)) << text;
}

}  // namespace
}  // namespace caisson
