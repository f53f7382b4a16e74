#include "sandbox/alarms.h"

#include <gtest/gtest.h>

namespace caisson::sandbox {
namespace {

using std::chrono::seconds;

std::vector<std::string> Types(const std::vector<store::SandboxEvent>& events) {
  std::vector<std::string> types;
  for (const auto& event : events) types.push_back(event.type);
  return types;
}
using List = std::vector<std::string>;

class AlarmsTest : public ::testing::Test {
 protected:
  std::vector<store::SandboxEvent> Look() { return alarms_.Look("i1", usage_, now_); }

  Alarms alarms_;
  engine::Usage usage_{
      .memory_limit_bytes = 128 << 20, .disk_used_bytes = 10, .disk_total_bytes = 1000};
  Alarms::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(AlarmsTest, EachChangeIsToldOnce) {
  EXPECT_TRUE(Look().empty());
  usage_.oom_kills = 2;
  auto events = Look();
  ASSERT_EQ(Types(events), List{"out_of_memory"});
  EXPECT_EQ(events[0].sandbox_id, "i1");
  EXPECT_EQ(events[0].level, "error");
  EXPECT_EQ(events[0].fields.at("kills"), "2");
  EXPECT_NE(events[0].message.find("128 MB"), std::string::npos);
  now_ += seconds(100);
  EXPECT_TRUE(Look().empty());
  usage_.pids_refused = 7;
  events = Look();
  ASSERT_EQ(Types(events), List{"too_many_processes"});
  EXPECT_EQ(events[0].fields.at("refused"), "7");
}

TEST_F(AlarmsTest, TheSameWallIsToldOfOnceAMinuteWithTheSum) {
  int told = 0;
  int64_t refused = 0;
  for (int second = 0; second <= 120; second += 5) {
    usage_.pids_refused += 10;
    for (const auto& event : Look()) {
      ++told;
      refused += std::stoll(event.fields.at("refused"));
    }
    now_ += seconds(5);
  }
  EXPECT_EQ(told, 3);
  EXPECT_EQ(refused, 250);
}

TEST_F(AlarmsTest, AFullDiskIsToldAgainOnlyAfterThereWasRoom) {
  usage_.disk_used_bytes = 960;
  EXPECT_EQ(Types(Look()), List{"disk_full"});
  EXPECT_TRUE(Look().empty());
  usage_.disk_used_bytes = 940;
  EXPECT_TRUE(Look().empty());
  usage_.disk_used_bytes = 1000;
  EXPECT_TRUE(Look().empty());
  usage_.disk_used_bytes = 100;
  EXPECT_TRUE(Look().empty());
  usage_.disk_used_bytes = 1000;
  EXPECT_EQ(Types(Look()), List{"disk_full"});
}

TEST_F(AlarmsTest, WhatAnAdoptedSandboxCountedBeforeIsNotNews) {
  alarms_ = Alarms(/*fresh=*/false);
  usage_.oom_kills = 5;
  EXPECT_TRUE(Look().empty());
  usage_.oom_kills = 6;
  auto events = Look();
  ASSERT_EQ(Types(events), List{"out_of_memory"});
  EXPECT_EQ(events[0].fields.at("kills"), "1");
}

TEST_F(AlarmsTest, CountersThatBeginAgainAreFollowed) {
  usage_.oom_kills = 5;
  EXPECT_EQ(Types(Look()), List{"out_of_memory"});
  usage_.oom_kills = 0;  // paused and continued
  EXPECT_TRUE(Look().empty());
  now_ += seconds(100);
  usage_.oom_kills = 1;
  EXPECT_EQ(Types(Look()), List{"out_of_memory"});
}

}  // namespace
}  // namespace caisson::sandbox
