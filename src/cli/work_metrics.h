// The numbers of the work platform for Prometheus, made of its events: what is told is counted,
// whoever did it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "events/log.h"
#include "git/broker.h"
#include "sdk/api_keys.h"

namespace caisson::cli {

class WorkMetrics {
 public:
  // All of these outlive it.
  WorkMetrics(asio::any_io_executor executor, events::Log& log, store::Store& store,
              Metrics& metrics);

  Task<Status> Start();
  Task<void> Stop();

 private:
  Task<void> Follow(std::unique_ptr<events::Subscription> subscription);
  void Count(const events::Event& event);
  void CountGit(const boost::json::object& data);
  void AddCost(Time at, double dollars);

  events::Log& log_;
  store::Store& store_;
  Metrics& metrics_;
  std::map<std::string, std::pair<std::string, double>> spent_;  // period -> its name, dollars
  TaskGroup tasks_;
};

// What passed the broker of git and models, and what it refused.
void CountBroker(Metrics& metrics, const git::Broker::Numbers& numbers);
// Sandboxes that were, and that were not made from something that was kept for them: "pool",
// "checkout".
void CountCache(Metrics& metrics, const char* cache, uint64_t hits, uint64_t misses);
// Calls to the provider of sandboxes, by the key they were made with.
void CountProviderKeys(Metrics& metrics, const std::vector<sdk::ApiKeyUse>& keys);

}  // namespace caisson::cli
