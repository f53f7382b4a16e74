// Where every request arrives: traffic into sandboxes goes to the gateway, the rest to the routes.
// Counts and logs each.
#pragma once

#include <set>
#include <string>

#include "base/async.h"
#include "base/metrics.h"
#include "cli/alerts.h"
#include "gateway/gateway.h"
#include "http/router.h"
#include "http/server.h"

namespace caisson::cli {

class Front {
 public:
  // All must outlive this. `lasting` are routes whose time says nothing about the server:
  // api::Frame::LastingRoutes().
  Front(gateway::Gateway& gateway, const http::Router& router, Metrics& metrics, Alerts& alerts,
        std::set<std::string> lasting)
      : gateway_(gateway),
        router_(router),
        metrics_(metrics),
        alerts_(alerts),
        lasting_(std::move(lasting)) {}

  Task<void> Handle(http::Exchange& exchange);

 private:
  void Record(const http::Exchange& exchange, const std::string& route,
              std::chrono::steady_clock::time_point begun);

  gateway::Gateway& gateway_;
  const http::Router& router_;
  Metrics& metrics_;
  Alerts& alerts_;
  const std::set<std::string> lasting_;
};

}  // namespace caisson::cli
