#include "cli/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/id.h"
#include "base/log.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using Steady = std::chrono::steady_clock;

double Rounded(double value) { return std::round(value * 10) / 10; }

}  // namespace

// ---- what came
// -----------------------------------------------------------------------------------

void RequestWindow::Add(const Answered& request) {
  ++all_;
  if (request.status >= 500) ++failed_;
  if (request.changes && request.status < 400) ++changed_;
  if (!request.timed) return;
  ++timed_;
  auto ms = static_cast<float>(request.took.count());
  if (times_.size() < kMaxTimes) {
    times_.push_back(ms);
    return;
  }
  uint64_t place = 0;
  FillRandom(&place, sizeof(place));
  if (place % timed_ < kMaxTimes) times_[place % timed_] = ms;
}

double RequestWindow::P95Ms() {
  if (times_.size() < kFewest) return 0;
  // So many of 100 were faster or as fast.
  size_t place = (times_.size() * 95 + 99) / 100 - 1;
  auto middle = times_.begin() + static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(times_, middle);
  return *middle;
}

double RequestWindow::ErrorPercent() const {
  if (all_ < kFewest) return 0;
  return 100 * static_cast<double>(failed_) / static_cast<double>(all_);
}

// ---- rules
// ---------------------------------------------------------------------------------------

Alerts::Alerts(asio::any_io_executor executor, const Config& config, Metrics& metrics,
               Sources sources)
    : metrics_(metrics),
      sources_(std::move(sources)),
      interval_(config.alert_check_s),
      tasks_(std::move(executor)) {
  if (interval_.count() <= 0) return;
  AddRule("p95_ms", "5 of 100 requests took {} ms or longer; the limit is {} ms.",
          config.alert_p95_ms, [](RequestWindow& came, double) { return came.P95Ms(); });
  AddRule("error_pct", "{} % of the requests failed; the limit is {} %.", config.alert_error_pct,
          [](RequestWindow& came, double) { return came.ErrorPercent(); });
  AddRule("active_sandboxes", "{} sandboxes run; the limit is {}.", config.alert_active_sandboxes,
          [this](RequestWindow&, double) { return static_cast<double>(sources_.sandboxes()); });
  AddRule("operations_per_minute", "{} requests per minute changed something; the limit is {}.",
          config.alert_operations_per_minute, [](RequestWindow& came, double minutes) {
            return static_cast<double>(came.changed()) / minutes;
          });
}

void Alerts::AddRule(std::string name, std::string sentence, int64_t limit, Measure measure) {
  if (limit <= 0) return;
  Gauge active = metrics_.AddGauge("caisson_alert_active", "1: the limit of this rule is crossed.",
                                   {{"rule", name}});
  active.Set(0);
  rules_.push_back({std::move(name),
                    std::move(sentence),
                    static_cast<double>(limit),
                    std::move(measure),
                    active,
                    {},
                    0});
}

void Alerts::Start() {
  if (!rules_.empty()) tasks_.Spawn("alerts", LookOften());
}

Task<void> Alerts::Stop() { co_await tasks_.Stop(); }

void Alerts::Count(const Answered& request) {
  if (!rules_.empty()) window_.Add(request);
}

Task<void> Alerts::LookOften() {
  for (;;) {
    auto begun = Steady::now();
    co_await SleepFor(interval_);
    Look(Steady::now() - begun);
  }
}

void Alerts::Look(std::chrono::duration<double> window) {
  RequestWindow came = std::exchange(window_, {});
  double minutes = std::max(window.count(), 1.0) / 60;
  for (Rule& rule : rules_) Judge(rule, rule.measure(came, minutes));
}

void Alerts::Judge(Rule& rule, double value) {
  bool crossed = value > rule.limit, was = rule.since.has_value();
  rule.value = Rounded(value);
  rule.active.Set(crossed ? 1 : 0);
  if (crossed == was) return;
  if (crossed) rule.since = Now();
  json::object data = Describe(rule);
  if (!crossed) rule.since.reset();
  Log(crossed ? LogLevel::kWarn : LogLevel::kInfo, crossed ? "alert" : "an alert is over",
      {{"rule", rule.name}, {"what", data.at("message")}});
  sources_.tell(crossed ? "alert_raised" : "alert_ended", data);
}

json::object Alerts::Describe(const Rule& rule) const {
  return {{"rule", rule.name},
          {"value", rule.value},
          {"limit", rule.limit},
          {"since", FormatTime(*rule.since)},
          {"message", fmt::format(fmt::runtime(rule.sentence), rule.value, rule.limit)}};
}

json::array Alerts::Active() const {
  json::array active;
  for (const Rule& rule : rules_)
    if (rule.since) active.push_back(Describe(rule));
  return active;
}

}  // namespace caisson::cli
