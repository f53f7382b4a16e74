// The server itself: its health, its audit log, the description of its API.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/frame.h"

namespace caisson::api {

// One thing the server needs, asked anew for every GET /api/v1/health/detailed.
struct HealthProbe {
  std::string name;  // "database", "engine"
  // Without it the server is of no use: 503 instead of 200.
  bool vital = false;
  // What there is to say about it; an error if it is not well. Has two seconds.
  std::function<Task<Result<json::object>>()> ask;
};
// True if the database answers.
HealthProbe DatabaseProbe(store::Store& store);

// All outlive the frame, which has all other routes already when the first request comes. `alerts`
// are the limits that are crossed now: rule, value, limit, since, message.
void AddServerRoutes(
    Frame& frame, store::Store& store, std::vector<HealthProbe> probes,
    std::function<json::array()> alerts = [] { return json::array(); });

}  // namespace caisson::api
