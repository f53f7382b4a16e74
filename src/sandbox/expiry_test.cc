// Ends, and a clock that is set while they are waited for.
#include "sandbox/expiry.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

class ExpiryTest : public ::testing::Test {
 protected:
  asio::io_context io_;
  std::chrono::nanoseconds set_by_{0};
  std::vector<std::string> expired_;
  std::map<std::string, std::chrono::nanoseconds> moved_;
  Expiry expiry_{io_.get_executor(), [this](std::string id) { expired_.push_back(std::move(id)); },
                 [this](const std::string& id, std::chrono::nanoseconds by) { moved_[id] += by; },
                 [this] { return Now() + set_by_; }};

  void SetClock(std::chrono::nanoseconds by) { set_by_ += by; }
  bool MovedBy(const std::string& id, std::chrono::nanoseconds by) {
    return std::chrono::abs(moved_[id] - by) < 1s;
  }
  // Lets it look once.
  void RunLoop() {
    TaskGroup tasks(io_.get_executor());
    tasks.Spawn("expiry", expiry_.Loop());
    io_.restart();
    io_.poll();
    EXPECT_TRUE(testing::Await(io_, tasks.Stop()));
  }
};

TEST_F(ExpiryTest, NobodyEndsBecauseTheClockWasSetForward) {
  expiry_.Set("a", Now() + 60s);
  expiry_.Set("b", Now() + 3600s);
  SetClock(24h * 7);
  RunLoop();
  EXPECT_TRUE(expired_.empty());
  EXPECT_TRUE(MovedBy("a", 24h * 7) && MovedBy("b", 24h * 7));
}

TEST_F(ExpiryTest, NobodyLivesOnBecauseTheClockWasSetBack) {
  expiry_.Set("a", Now() - 1s);
  expiry_.Set("b", Now() + 60s);
  SetClock(-24h * 7);
  RunLoop();
  EXPECT_EQ(expired_, std::vector<std::string>{"a"});
  EXPECT_TRUE(MovedBy("b", -24h * 7));
}

TEST_F(ExpiryTest, WhoComesAfterTheChangeHasTheNewTime) {
  expiry_.Set("old", Now() + 60s);
  SetClock(1h);
  expiry_.FollowClock();
  expiry_.Set("new", Now() + 1h - 1s);
  expiry_.FollowClock();
  RunLoop();
  EXPECT_EQ(expired_, std::vector<std::string>{"new"});
  EXPECT_TRUE(MovedBy("old", 1h));
  EXPECT_FALSE(moved_.contains("new"));
}

TEST_F(ExpiryTest, AClockThatIsALittleWrongMovesNothing) {
  expiry_.Set("a", Now() + 60s);
  for (int i = 0; i < 10; ++i) {
    SetClock(500ms);
    expiry_.FollowClock();
  }
  EXPECT_TRUE(moved_.empty());
}

}  // namespace
}  // namespace caisson::sandbox
