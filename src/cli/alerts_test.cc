#include "cli/alerts.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>

#include "base/testing.h"
#include "events/types.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AlertsTest : public ::testing::Test {
 protected:
  void Make() {
    auto tell = [this](std::string type, const json::object& data) {
      Status right = events::CheckData(type, data);
      EXPECT_TRUE(right) << right.error().message();
      told_.push_back(type + " " + std::string(data.at("rule").as_string()));
      last_ = data;
    };
    alerts_ = std::make_unique<Alerts>(
        io_.get_executor(), config_, metrics_,
        Alerts::Sources{.sandboxes = [this] { return sandboxes_; }, .tell = tell});
  }
  void Came(int count, Answered request) {
    for (int i = 0; i < count; ++i) alerts_->Count(request);
  }
  std::vector<std::string> Active() {
    std::vector<std::string> names;
    for (const json::value& one : alerts_->Active()) names.emplace_back(one.at("rule").as_string());
    return names;
  }

  asio::io_context io_;
  Config config_;
  Metrics metrics_;
  size_t sandboxes_ = 0;
  std::vector<std::string> told_;
  json::object last_;
  std::unique_ptr<Alerts> alerts_;
};

TEST_F(AlertsTest, SlowRequestsAreToldOnceAndWhenItIsOver) {
  Make();
  Came(94, {.took = 10ms, .status = 200});
  Came(6, {.took = 3s, .status = 200});
  alerts_->Look(60s);
  EXPECT_THAT(told_, ElementsAre("alert_raised p95_ms"));
  EXPECT_EQ(last_.at("value").to_number<double>(), 3000);
  EXPECT_EQ(last_.at("message"), "5 of 100 requests took 3000 ms or longer; the limit is 2000 ms.");
  EXPECT_THAT(metrics_.Text(), HasSubstr("caisson_alert_active{rule=\"p95_ms\"} 1"));
  Came(30, {.took = 5s, .status = 200});
  alerts_->Look(60s);
  EXPECT_EQ(told_.size(), 1u);
  EXPECT_THAT(Active(), ElementsAre("p95_ms"));
  EXPECT_EQ(alerts_->Active().at(0).at("value").to_number<double>(), 5000) << "as it is now";
  alerts_->Look(60s);
  EXPECT_THAT(told_, ElementsAre("alert_raised p95_ms", "alert_ended p95_ms"));
  EXPECT_THAT(Active(), IsEmpty());
  EXPECT_THAT(metrics_.Text(), HasSubstr("caisson_alert_active{rule=\"p95_ms\"} 0"));
}

TEST_F(AlertsTest, AtTheLimitThereIsNoAlert) {
  Make();
  sandboxes_ = 10;
  Came(95, {.took = 10ms, .status = 200});
  Came(5, {.took = 3s, .status = 500});
  Came(100, {.took = 10ms, .status = 204, .changes = true});
  alerts_->Look(60s);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(AlertsTest, FailuresSandboxesAndOperations) {
  Make();
  sandboxes_ = 11;
  Came(94, {.took = 1ms, .status = 404});
  Came(6, {.took = 1ms, .status = 503});
  Came(51, {.took = 1ms, .status = 201, .changes = true});
  Came(99, {.took = 1ms, .status = 422, .changes = true});
  alerts_->Look(30s);
  EXPECT_THAT(told_,
              ElementsAre("alert_raised active_sandboxes", "alert_raised operations_per_minute"))
      << "2.4 % failed; 102 in a minute changed something";
  Came(20, {.took = 1ms, .status = 200});
  Came(2, {.took = 1ms, .status = 500});
  alerts_->Look(30s);
  EXPECT_THAT(Active(), ElementsAre("error_pct", "active_sandboxes"));
}

TEST_F(AlertsTest, FewRequestsAndLongStreamsTellNothing) {
  Make();
  Came(19, {.took = 10s, .status = 500});
  alerts_->Look(60s);
  Came(50, {.took = 1h, .status = 200, .timed = false});
  alerts_->Look(60s);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(AlertsTest, ManyRequestsTakeNoMoreRoom) {
  RequestWindow window;
  for (size_t i = 0; i < RequestWindow::kMaxTimes; ++i) window.Add({.took = 1ms, .status = 200});
  for (size_t i = 0; i < RequestWindow::kMaxTimes; ++i) window.Add({.took = 9ms, .status = 200});
  EXPECT_EQ(window.P95Ms(), 9) << "the later ones are half of what is kept";
}

TEST_F(AlertsTest, ARuleWithoutALimitIsNone) {
  config_.alert_active_sandboxes = 0;
  Make();
  sandboxes_ = 1'000;
  alerts_->Look(60s);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(metrics_.Text(), ::testing::Not(HasSubstr("active_sandboxes")));
}

TEST_F(AlertsTest, WithoutChecksThereAreNone) {
  config_.alert_check_s = 0;
  Make();
  sandboxes_ = 1'000;
  alerts_->Look(60s);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(AlertsTest, LooksByItself) {
  config_.alert_check_s = 1;
  Make();
  sandboxes_ = 11;
  alerts_->Start();
  auto deadline = std::chrono::steady_clock::now() + 60s;
  while (told_.empty() && std::chrono::steady_clock::now() < deadline)
    testing::Await(io_, SleepFor(10ms));
  EXPECT_THAT(told_, ElementsAre("alert_raised active_sandboxes"));
  testing::Await(io_, alerts_->Stop());
}

}  // namespace
}  // namespace caisson::cli
