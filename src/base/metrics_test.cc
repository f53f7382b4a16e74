#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson {
namespace {

using testing::HasSubstr;

TEST(Metrics, TheSameNameAndLabelsAreTheSameMetric) {
  Metrics metrics;
  metrics.AddCounter("requests_total", "Requests.", {{"status", "2xx"}}).Add();
  metrics.AddCounter("requests_total", "Requests.", {{"status", "2xx"}}).Add(2);
  metrics.AddCounter("requests_total", "Requests.", {{"status", "5xx"}}).Add();
  std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# HELP requests_total Requests.\n# TYPE requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("requests_total{status=\"2xx\"} 3"));
  EXPECT_THAT(text, HasSubstr("requests_total{status=\"5xx\"} 1"));
}

TEST(Metrics, GaugesMoveBothWays) {
  Metrics metrics;
  Gauge gauge = metrics.AddGauge("open", "Open connections.");
  gauge.Set(5);
  gauge.Add(-2);
  EXPECT_EQ(gauge.value(), 3);
  EXPECT_THAT(metrics.Text(), HasSubstr("\nopen 3\n"));
}

TEST(Metrics, HistogramsCountCumulatively) {
  Metrics metrics;
  Histogram histogram = metrics.AddHistogram("wait_seconds", "Waiting.", {0.1, 1});
  histogram.Observe(0.05);
  histogram.Observe(0.5);
  histogram.Observe(7);
  std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{le=\"0.1\"} 1"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{le=\"1\"} 2"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_bucket{le=\"+Inf\"} 3"));
  EXPECT_THAT(text, HasSubstr("wait_seconds_count 3"));
}

}  // namespace
}  // namespace caisson
