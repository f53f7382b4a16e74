#include "sandbox/means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

Sample At(int64_t second, double cpu, int64_t memory) {
  Sample sample{.cpu_used_pct = cpu};
  sample.usage.at = Time(std::chrono::seconds(second));
  sample.usage.cpu_ns = second;
  sample.usage.memory_used_bytes = memory;
  sample.usage.disk_used_bytes = 10 * memory;
  sample.usage.memory_limit_bytes = 1000 + second;
  return sample;
}

TEST(Means, OneForEachInterval) {
  Means means;
  for (auto [second, cpu, memory] : {std::tuple{600, 10.0, 100},
                                     {700, 20.0, 400},
                                     {899, 60.0, 100},
                                     {900, 5.0, 7},
                                     {1600, 8.0, 9}})
    means.Add(At(second, cpu, memory), 300s, 10);
  ASSERT_EQ(means.all().size(), 3u);
  const Sample& first = means.all()[0];
  EXPECT_EQ(first.usage.at, Time(899s));  // when it was last true
  EXPECT_DOUBLE_EQ(first.cpu_used_pct, 30);
  EXPECT_EQ(first.usage.memory_used_bytes, 200);
  EXPECT_EQ(first.usage.disk_used_bytes, 2000);
  EXPECT_EQ(first.usage.cpu_ns, 899);
  EXPECT_EQ(first.usage.memory_limit_bytes, 1899);
  EXPECT_EQ(means.all()[1].usage.memory_used_bytes, 7);
  EXPECT_EQ(means.all()[2].usage.at, Time(1600s));  // nothing stands for what was not measured
}

TEST(Means, TheNewestAreKept) {
  Means means;
  for (int64_t second = 0; second < 100; ++second) means.Add(At(second, 0, second), 10s, 3);
  std::vector<int64_t> ends;
  for (const Sample& mean : means.all()) ends.push_back(mean.usage.cpu_ns);
  EXPECT_THAT(ends, ElementsAre(79, 89, 99));
  Means none;
  none.Add(At(1, 0, 1), 10s, 0);
  none.Add(At(2, 0, 1), 10s, 0);
  EXPECT_TRUE(none.all().empty());
}

TEST(Means, OfSizesThatDoNotFitInASum) {
  constexpr int64_t kLarge = std::numeric_limits<int64_t>::max() / 10 - 1;
  Means means;
  for (int64_t second = 0; second < 300; ++second) means.Add(At(second, 100, kLarge), 300s, 1);
  EXPECT_EQ(means.all()[0].usage.memory_used_bytes, kLarge);
  EXPECT_DOUBLE_EQ(means.all()[0].cpu_used_pct, 100);
}

}  // namespace
}  // namespace caisson::sandbox
