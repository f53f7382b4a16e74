#include "gateway/numbers.h"

#include <array>

namespace caisson::gateway {
namespace {

constexpr std::array kResults = {"2xx", "3xx", "4xx", "5xx", "upgraded", "client_gone", "cut"};

std::map<std::string, Counter, std::less<>> RequestCounters(Metrics& metrics, std::string to) {
  std::map<std::string, Counter, std::less<>> counters;
  for (std::string result : kResults)
    counters.emplace(result, metrics.AddCounter("caisson_gateway_requests_total",
                                                "Requests into sandboxes, by how they ended.",
                                                {{"to", to}, {"result", result}}));
  return counters;
}

Histogram HeadHistogram(Metrics& metrics, std::string to) {
  return metrics.AddHistogram("caisson_gateway_response_seconds",
                              "From a request into a sandbox to the head of its answer.",
                              LatencyBuckets(), {{"to", std::move(to)}});
}

Counter Connections(Metrics& metrics, std::string how) {
  return metrics.AddCounter("caisson_gateway_connections_total",
                            "Connections into sandboxes: made, reused, or refused by the port.",
                            {{"how", std::move(how)}});
}

Counter Bytes(Metrics& metrics, std::string direction) {
  return metrics.AddCounter("caisson_gateway_bytes_total",
                            "Bytes of bodies that passed, seen from the sandbox.",
                            {{"direction", std::move(direction)}});
}

}  // namespace

Numbers::Numbers(Metrics& metrics)
    : in_flight(metrics.AddGauge("caisson_gateway_requests_in_flight",
                                 "Requests into sandboxes that are not finished.")),
      bytes_in(Bytes(metrics, "in")),
      bytes_out(Bytes(metrics, "out")),
      connections_made(Connections(metrics, "made")),
      connections_reused(Connections(metrics, "reused")),
      connections_refused(Connections(metrics, "refused")),
      envd_requests_(RequestCounters(metrics, "envd")),
      port_requests_(RequestCounters(metrics, "port")),
      envd_head_(HeadHistogram(metrics, "envd")),
      port_head_(HeadHistogram(metrics, "port")) {}

void Numbers::CountRequest(bool to_envd, std::string_view result) {
  auto& counters = to_envd ? envd_requests_ : port_requests_;
  if (auto it = counters.find(result); it != counters.end()) it->second.Add();
}

void Numbers::ObserveHead(bool to_envd, double seconds) {
  (to_envd ? envd_head_ : port_head_).Observe(seconds);
}

}  // namespace caisson::gateway
