// How many steps run at once, and whose turn it is.
#include <gmock/gmock.h>

#include "flow/flow_fixture.h"

namespace caisson::flow {
namespace {

class LimitsTest : public FlowTest {
 protected:
  // Counts who is at work at the same time, by the keys in the run's input.
  static Task<Outcome> Work(LimitsTest* test, StepContext context) {
    std::vector<std::string> keys{"all"};
    for (const auto& [name, value] : context.input)
      keys.push_back(std::string(name) + ":" + std::string(value.get_string()));
    for (const std::string& key : keys)
      test->most_[key] = std::max(test->most_[key], ++test->now_[key]);
    co_await SleepFor(1ms);
    for (const std::string& key : keys) --test->now_[key];
    test->order_.push_back(context.run_id);
    co_return Outcome::Done();
  }
  void Works(const std::string& step) {
    handlers_[step] = [this](StepContext context) { return Work(this, std::move(context)); };
  }

  std::map<std::string, int> now_, most_;
  std::vector<std::string> order_;  // runs whose steps came to their end
};
// How many come to run at once is a matter of speed; that limits are kept is shown on both
// databases by store/flow_rows_test.cc.
INSTANTIATE_TEST_SUITE_P(On, LimitsTest, ::testing::Values("sqlite"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(LimitsTest, TwoHundredRunsNeverExceedTheirLimits) {
  config_.flow_workers = 12;
  config_.flow_max_per_repo = 4;
  config_.flow_max_per_agent = 2;
  config_.flow_max_per_user = 6;
  Steps({"one", "two"});
  Works("one");
  Works("two");
  Engine& engine = StartEngine();
  Write([&](store::Transaction& tx) -> Status {
    for (int i = 0; i < 200; ++i) {
      std::string repo = std::to_string(i % 5), agent = std::to_string(i % 9),
                  user = std::to_string(i % 3);
      TRY(engine.StartRun(tx, {.id = "r" + std::to_string(i),
                               .definition = "test",
                               .owner_id = i % 2 == 0 ? "ann" : "bob",
                               .input = {{"repo", repo}, {"agent", agent}, {"user", user}},
                               .repo_key = repo,
                               .agent_key = agent,
                               .user_key = user}));
    }
    return {};
  });
  engine.Wake();
  Until([&] { return order_.size() == 400; });
  for (const auto& [key, most] : most_) {
    int limit = key.starts_with("repo")    ? 4
                : key.starts_with("agent") ? 2
                : key.starts_with("user")  ? 6
                                           : 12;
    EXPECT_LE(most, limit) << key;
  }
  EXPECT_GT(most_["all"], 1);  // or no limit was ever near
  Until([&] {
    return Write([](store::Transaction& tx) {
             return tx.Count(store::Select<store::RunRow>().Eq(&store::RunRow::state, "succeeded"));
           }).value() == 200;
  });
}

TEST_P(LimitsTest, AUserWithFewRunsDoesNotWaitForOneWithMany) {
  config_.flow_workers = 4;
  Steps({"one"});
  Works("one");
  Engine& engine = MakeEngine();
  for (int i = 0; i < 40; ++i) StartRun(engine, {.id = "a" + std::to_string(i)});
  StartRun(engine, {.id = "b", .owner_id = "bob"});
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  Until([&] { return order_.size() == 41; });
  size_t place = static_cast<size_t>(std::ranges::find(order_, "b") - order_.begin());
  EXPECT_LT(place, 8);
}

TEST_P(LimitsTest, UrgentOnesGoFirst) {
  config_.flow_workers = 1;
  Steps({"one"});
  Works("one");
  Engine& engine = MakeEngine();
  for (int i = 0; i < 10; ++i) StartRun(engine, {.id = "r" + std::to_string(i)});
  StartRun(engine, {.id = "urgent", .priority = 5});
  ASSERT_TRUE(testing::Await(io_, engine.Start()));
  Until([&] { return order_.size() == 11; });
  EXPECT_EQ(order_.front(), "urgent");
  EXPECT_EQ(order_.back(), "r9");
}

TEST_P(LimitsTest, ARunThatWaitsHoldsNoPlace) {
  config_.flow_workers = 1;
  config_.flow_max_per_agent = 1;
  Steps({"one"});
  On("one", [](const StepContext& context) {
    return context.run_id == "waits" ? Outcome::Wait("never", 1h) : Outcome::Done();
  });
  Engine& engine = StartEngine();
  StartRun(engine, {.id = "waits", .agent_key = "a"});
  UntilRun("waits", "waiting");
  StartRun(engine, {.id = "works", .agent_key = "a"});
  UntilRun("works", "succeeded");
}

}  // namespace
}  // namespace caisson::flow
