#include "cli/work_metrics.h"

#include <boost/json.hpp>

#include "base/log.h"
#include "store/work_rows.h"
#include "work/json_fields.h"

namespace caisson::cli {
namespace {

using work::IntOf;
using work::NumberOf;
using work::TextOf;

constexpr std::chrono::milliseconds kPatience{60'000};
constexpr std::chrono::milliseconds kRetry{1'000};

}  // namespace

WorkMetrics::WorkMetrics(asio::any_io_executor executor, events::Log& log, store::Store& store,
                         Metrics& metrics)
    : log_(log), store_(store), metrics_(metrics), tasks_(std::move(executor)) {}

Task<Status> WorkMetrics::Start() {
  std::string month = FormatTime(Now()).substr(0, 7);
  CO_TRY_ASSIGN(Time begin, ParseTime(month + "-01T00:00:00Z"));
  CO_TRY_ASSIGN(auto costs, co_await store_.Read([begin](store::Transaction& tx) {
    return tx.List(store::Select<store::CostRow>().Greater(&store::CostRow::at, begin));
  }));
  AddCost(Now(), 0);
  for (const store::CostRow& cost : costs) AddCost(cost.at, cost.dollars);
  events::Filter filter;
  filter.types = {"sandbox_created", "sandbox_terminated", "git_operation", "cost_recorded"};
  CO_TRY_ASSIGN(auto subscription, co_await log_.Follow(std::move(filter), std::nullopt));
  tasks_.Spawn("counting events", Follow(std::move(subscription)));
  co_return Status();
}

Task<void> WorkMetrics::Stop() { co_await tasks_.Stop(); }

Task<void> WorkMetrics::Follow(std::unique_ptr<events::Subscription> subscription) {
  for (;;) {
    auto batch = co_await subscription->Next(kPatience);
    if (!batch) {
      LogWarn("events are not counted; it is tried again", {{"error", batch.error().message()}});
      co_await SleepFor(kRetry);
      continue;
    }
    for (const events::Event& event : batch->events) Count(event);
    AddCost(Now(), 0);  // a new day begins at zero
  }
}

void WorkMetrics::Count(const events::Event& event) {
  boost::json::object data = work::ParseObject(event.data);
  if (event.type == "git_operation") return CountGit(data);
  if (event.type == "cost_recorded") return AddCost(event.at, NumberOf(data, "dollars"));
  if (event.type == "sandbox_created")
    return metrics_
        .AddHistogram("caisson_sandbox_creation_seconds", "From the request to a running sandbox.",
                      LatencyBuckets())
        .Observe(static_cast<double>(IntOf(data, "creation_ms")) / 1000);
  metrics_.AddCounter("caisson_sandbox_hours_total", "Hours that sandboxes of the platform ran.")
      .Add(NumberOf(data, "runtime_seconds") / 3600);
}

void WorkMetrics::CountGit(const boost::json::object& data) {
  std::string operation = TextOf(data, "operation"), status = TextOf(data, "status");
  if (status != "completed" && status != "failed") return;  // progress
  metrics_
      .AddCounter("caisson_git_operation_total", "Git operations in sandboxes.",
                  {{"operation", operation}, {"status", status}})
      .Add();
  metrics_
      .AddHistogram("caisson_git_operation_duration_seconds", "How long they took.",
                    {0.1, 1, 10, 60}, {{"operation", operation}})
      .Observe(NumberOf(data, "duration_ms") / 1000);
  if (status == "failed")
    metrics_
        .AddCounter("caisson_git_errors_total", "Git operations that failed.",
                    {{"operation", operation}, {"error_type", TextOf(data, "error_type")}})
        .Add();
  if (TextOf(data, "error_type") == "conflict")
    metrics_.AddCounter("caisson_git_conflicts_detected_total", "Conflicts that git found.").Add();
  if (operation == "push" && IntOf(data, "attempts") > 1)
    metrics_.AddCounter("caisson_git_push_retry_count_total", "Pushes that were tried again.")
        .Add(static_cast<double>(IntOf(data, "attempts") - 1));
}

void WorkMetrics::AddCost(Time at, double dollars) {
  std::string text = FormatTime(at), now = FormatTime(Now());
  for (const auto& [period, length] : {std::pair{"day", 10}, std::pair{"month", 7}}) {
    std::string current = now.substr(0, static_cast<size_t>(length));
    auto& [name, sum] = spent_[period];
    if (name != current) {
      name = current;
      sum = 0;
    }
    if (text.substr(0, static_cast<size_t>(length)) == current) sum += dollars;
    metrics_
        .AddGauge("caisson_estimated_cost_dollars", "What was spent in this day or month (UTC).",
                  {{"period", period}})
        .Set(sum);
  }
}

void CountProviderKeys(Metrics& metrics, const std::vector<sdk::ApiKeyUse>& keys) {
  for (const sdk::ApiKeyUse& key : keys) {
    for (const auto& [outcome, total] :
         {std::pair{"taken", key.calls - key.refused}, std::pair{"refused", key.refused}}) {
      Counter counter = metrics.AddCounter("caisson_provider_key_calls_total",
                                           "Calls to the provider of sandboxes, by their key.",
                                           {{"key_id", key.id}, {"outcome", outcome}});
      counter.Add(static_cast<double>(total) - counter.value());
    }
    metrics
        .AddGauge("caisson_provider_key_current", "1: calls are made with this key.",
                  {{"key_id", key.id}})
        .Set(key.current ? 1 : 0);
  }
}

void CountCache(Metrics& metrics, const char* cache, uint64_t hits, uint64_t misses) {
  auto count = [&](const char* name, const char* help, uint64_t total) {
    Counter counter = metrics.AddCounter(name, help, {{"cache", cache}});
    counter.Add(static_cast<double>(total) - counter.value());
  };
  count("caisson_sandbox_cache_hits_total", "Sandboxes made from what was kept for them.", hits);
  count("caisson_sandbox_cache_misses_total", "Sandboxes for which nothing was kept.", misses);
}

void CountBroker(Metrics& metrics, const git::Broker::Numbers& numbers) {
  auto count = [&metrics](const char* kind, uint64_t total) {
    Counter counter = metrics.AddCounter(
        "caisson_broker_requests_total",
        "Requests of sandboxes to the broker, by what became of them.", {{"kind", kind}});
    counter.Add(static_cast<double>(total) - counter.value());
  };
  count("fetch", numbers.fetches);
  count("push", numbers.pushes);
  count("model", numbers.model_requests);
  count("refused", numbers.refused);
  metrics.AddGauge("caisson_broker_sandboxes", "Sandboxes that a broker listens in.")
      .Set(static_cast<double>(numbers.sandboxes));
  metrics.AddGauge("caisson_broker_connections", "Open connections from sandboxes to the broker.")
      .Set(static_cast<double>(numbers.connections));
}

}  // namespace caisson::cli
