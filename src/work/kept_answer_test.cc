#include "work/kept_answer.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/testing.h"

namespace caisson::work {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

class KeptAnswerTest : public ::testing::Test {
 protected:
  ~KeptAnswerTest() override { testing::Await(io_, answer_.Stop()); }

  Task<Result<json::object>> Ask() {
    ++asked_;
    co_await SleepFor(delay_);
    if (failing_) co_return Fail(Code::kUnavailable, "It does not work.");
    co_return json::object{{"asked", asked_}};
  }

  asio::io_context io_;
  int asked_ = 0;
  milliseconds delay_{0};
  bool failing_ = false;
  KeptAnswer answer_{io_.get_executor(), "it", [this] { return Ask(); }};
};

TEST_F(KeptAnswerTest, IsAskedForOnce) {
  for (int i = 0; i < 3; ++i) {
    auto got = testing::Await(io_, answer_.Get());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->at("asked"), 1);
  }
  EXPECT_EQ(asked_, 1);
}

TEST_F(KeptAnswerTest, FailuresAreKeptToo) {
  failing_ = true;
  EXPECT_EQ(testing::Await(io_, answer_.Get()).error().code(), Code::kUnavailable);
  failing_ = false;
  EXPECT_EQ(testing::Await(io_, answer_.Get()).error().code(), Code::kUnavailable);
  EXPECT_EQ(asked_, 1);
}

TEST_F(KeptAnswerTest, NobodyWaitsLongAndTheAnswerComesAnyway) {
  delay_ = milliseconds(300);
  EXPECT_EQ(testing::Await(io_, answer_.Get(milliseconds(1))).error().code(),
            Code::kDeadlineExceeded);
  EXPECT_TRUE(testing::Await(io_, answer_.Get(milliseconds(60'000))));
  EXPECT_EQ(asked_, 1);
}

}  // namespace
}  // namespace caisson::work
