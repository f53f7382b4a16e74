// The gateway's metrics, made once so that a request only adds.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/metrics.h"

namespace caisson::gateway {

class Numbers {
 public:
  explicit Numbers(Metrics& metrics);

  // `result`: "2xx" ... "5xx", "upgraded", "client_gone" or "cut".
  void CountRequest(bool to_envd, std::string_view result);
  void ObserveHead(bool to_envd, double seconds);

  Gauge in_flight;
  Counter bytes_in;   // into sandboxes
  Counter bytes_out;  // out of them
  Counter connections_made;
  Counter connections_reused;
  Counter connections_refused;

 private:
  std::map<std::string, Counter, std::less<>> envd_requests_;
  std::map<std::string, Counter, std::less<>> port_requests_;
  Histogram envd_head_;
  Histogram port_head_;
};

}  // namespace caisson::gateway
