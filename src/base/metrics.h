// Numbers for Prometheus: counters, gauges, histograms, and their text form. A thin face over
// prometheus-cpp, whose headers stay inside metrics.cc.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace caisson {

// Label values must come from a small fixed set (a status class, a route pattern), never from a
// client: every combination is kept for the life of the process.
using MetricLabels = std::map<std::string, std::string>;

// Handles are cheap to copy and valid as long as the Metrics they came from.
class Counter {
 public:
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  void Add(double amount = 1);
  double value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value);
  void Add(double amount);  // may be negative
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value);

 private:
  prometheus::Histogram* histogram_;
};

// From 0.5 ms to a minute, in seconds.
const std::vector<double>& LatencyBuckets();

// All metrics of the process. Asking again for the same name and labels gives the same metric.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter AddCounter(const std::string& name, const std::string& help,
                     const MetricLabels& labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  // `buckets` are upper bounds, ascending.
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& buckets, const MetricLabels& labels = {});

  // The text exposition format, version 0.0.4.
  std::string Text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson
