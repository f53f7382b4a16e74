#include "work/start_limit.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

using std::chrono::seconds;

TEST(StartLimit, CountsEachUsersLastMinute) {
  Config config;
  StartLimit::Clock::time_point now{std::chrono::hours(1)};
  StartLimit limit(config, [&now] { return now; });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limit.Take("ann"));  // 0 = unlimited
  EXPECT_EQ(limit.RetryAfter("ann"), seconds(0));

  config.start_rate_limit = 2;
  EXPECT_TRUE(limit.Take("ann"));
  now += seconds(20);
  EXPECT_TRUE(limit.Take("ann"));
  Status third = limit.Take("ann");
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Code::kResourceExhausted);
  EXPECT_NE(third.error().message().find("in 40 s"), std::string::npos) << third.error().message();
  EXPECT_EQ(limit.RetryAfter("ann"), seconds(40));
  EXPECT_TRUE(limit.Take("bob"));
  now += seconds(40);
  EXPECT_TRUE(limit.Take("ann"));  // the first one is a minute old
  EXPECT_FALSE(limit.Take("ann"));
  EXPECT_EQ(limit.RetryAfter("ann"), seconds(20));
}

TEST(StartLimit, WhatDidNotComeAboutDoesNotCount) {
  Config config;
  config.start_rate_limit = 1;
  StartLimit limit(config);
  limit.GiveBack("ann");
  EXPECT_TRUE(limit.Take("ann"));
  limit.GiveBack("ann");
  EXPECT_TRUE(limit.Take("ann"));
  EXPECT_FALSE(limit.Take("ann"));
}

class StartLimitOfTasks : public WorkTest {};

TEST_F(StartLimitOfTasks, OnlyWhatBeginsCounts) {
  config_.start_rate_limit = 2;
  workshop_.hold_agent = true;
  auto ada = Agent("Ada"), grace = Agent("Grace"), mary = Agent("Mary");
  std::string first = AddTask(ATask());
  EXPECT_EQ(Start(first).error().code(), Code::kFailedPrecondition);  // it has no agent
  auto started = Start(first, ada.id);
  ASSERT_TRUE(started);
  EXPECT_TRUE(Start(first, ada.id)->already);
  // A drag on the board is a start like any other.
  NewTask task = ATask();
  task.agent_id = grace.id;
  std::string second = AddTask(task), third = AddTask(task);
  ASSERT_TRUE(Wait(work_->tasks.MoveTo("ann", second, {.status = "in_progress"})));
  task.agent_id = mary.id;
  EXPECT_EQ(Wait(work_->tasks.CreateAndStart("ann", task)).error().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Start(third, mary.id).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(Wait(work_->tasks.MoveTo("ann", third, {.status = "in_progress"})).error().code(),
            Code::kResourceExhausted);
  EXPECT_GT(work_->starts.RetryAfter("ann"), seconds(0));
  // Nothing was made by the refused ones, and other moves go on.
  EXPECT_EQ(Wait(work_->tasks.List("ann", {}))->total, 3);
  EXPECT_TRUE(Wait(work_->tasks.MoveTo("ann", third, {.status = "backlog"})));
  workshop_.hold_agent = false;
  Await(started->execution_id, {"succeeded"});
}

}  // namespace
}  // namespace caisson::work
