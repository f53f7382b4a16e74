// Alerts: what the server measures anyway is compared with limits every alert_check_s. A limit that
// is crossed is told once, and once more when it is over; in between it is shown by the health and
// at /metrics. Nothing of it is kept: after a restart the next look finds what there is.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/metrics.h"
#include "base/time.h"

namespace caisson::cli {

// A request to the control plane that was answered.
struct Answered {
  std::chrono::duration<double, std::milli> took{};
  unsigned status = 0;
  bool changes = false;  // by its method
  bool timed = true;     // false: it lasts as long as its client wants
};

// What came since the last look. Of very many requests in one look the 95th of 100 is that of
// kMaxTimes of them, drawn by lot.
class RequestWindow {
 public:
  static constexpr size_t kMaxTimes = 10'000;
  // Of fewer requests no share is told: one that fails at night is not half of the traffic.
  static constexpr size_t kFewest = 20;

  void Add(const Answered& request);
  double P95Ms();
  double ErrorPercent() const;  // answered with 5xx
  size_t changed() const { return changed_; }

 private:
  std::vector<float> times_;
  size_t timed_ = 0, all_ = 0, failed_ = 0, changed_ = 0;
};

class Alerts {
 public:
  struct Sources {
    std::function<size_t()> sandboxes;  // that run now
    // An event for the administrator.
    std::function<void(std::string type, const boost::json::object& data)> tell;
  };
  // `metrics` outlives it.
  Alerts(asio::any_io_executor executor, const Config& config, Metrics& metrics, Sources sources);

  void Start();
  Task<void> Stop();

  void Count(const Answered& request);
  // Compares what came in the last `window`, and begins the next one.
  void Look(std::chrono::duration<double> window);
  // The limits that are crossed: rule, value, limit, since, message.
  boost::json::array Active() const;

 private:
  // Its value, of what came in so many minutes.
  using Measure = std::function<double(RequestWindow& came, double minutes)>;
  struct Rule {
    std::string name;      // "active_sandboxes"
    std::string sentence;  // "{} sandboxes run; the limit is {}."
    double limit = 0;
    Measure measure;
    Gauge active;
    std::optional<Time> since;  // it is crossed
    double value = 0;           // at the last look
  };
  void AddRule(std::string name, std::string sentence, int64_t limit, Measure measure);
  void Judge(Rule& rule, double value);
  boost::json::object Describe(const Rule& rule) const;
  Task<void> LookOften();

  Metrics& metrics_;
  const Sources sources_;
  const std::chrono::seconds interval_;
  std::vector<Rule> rules_;
  RequestWindow window_;
  TaskGroup tasks_;
};

}  // namespace caisson::cli
