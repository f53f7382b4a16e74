// Where every request arrives: traffic into sandboxes goes to the gateway, the rest to the routes.
// Counts and logs each.
#pragma once

#include "base/async.h"
#include "base/metrics.h"
#include "gateway/gateway.h"
#include "http/router.h"
#include "http/server.h"

namespace caisson::cli {

class Front {
 public:
  // All must outlive this.
  Front(gateway::Gateway& gateway, const http::Router& router, Metrics& metrics)
      : gateway_(gateway), router_(router), metrics_(metrics) {}

  Task<void> Handle(http::Exchange& exchange);

 private:
  void Record(const http::Exchange& exchange, const std::string& route,
              std::chrono::steady_clock::time_point begun);

  gateway::Gateway& gateway_;
  const http::Router& router_;
  Metrics& metrics_;
};

}  // namespace caisson::cli
