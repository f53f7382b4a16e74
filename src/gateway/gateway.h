// The way for traffic into sandboxes: finds the sandbox a request means, checks that it may enter,
// and passes it on. The in-memory registry of sandboxes is asked; no database is on this path.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/config.h"
#include "base/metrics.h"
#include "gateway/directory.h"
#include "http/server.h"

namespace caisson::gateway {

struct GatewayOptions {
  std::string domain = "caisson.localhost";  // of sandbox host names
  uint16_t envd_port = 49983;
  // envd is silent for so long: it is asked whether it lives; no answer within the same time again
  // cuts its requests off.
  std::chrono::milliseconds envd_timeout{10'000};
  std::chrono::milliseconds idle_timeout{620'000};  // no byte either way: the request ends
  std::chrono::milliseconds connect_timeout{5'000};
  // A closed port is tried again after each of these pauses: its server may be about to start.
  std::vector<std::chrono::milliseconds> retry_pauses{
      std::chrono::milliseconds(100), std::chrono::milliseconds(200),
      std::chrono::milliseconds(300), std::chrono::milliseconds(400)};
  // At once into all sandboxes, of which none gets too many (Shares); more are answered 429.
  size_t max_requests = 8'000;
  size_t max_idle_connections = 32;  // kept open per sandbox
  std::chrono::milliseconds max_idle_time{10'000};
  size_t max_header_bytes = 64 << 10;
  std::optional<uint16_t> editor_port = {};  // always private (editor_pass.h); none if not set
  std::chrono::seconds editor_pass_time{7 * 86'400};  // of a browser's cookie
  // Whether a text opens something of this server, so that no sandbox may see it.
  std::function<bool(std::string_view)> is_our_key = {};

  static GatewayOptions From(const Config& config);
};

class Gateway {
 public:
  // `directory` and `metrics` must outlive this.
  Gateway(asio::any_io_executor executor, GatewayOptions options, Directory& directory,
          Metrics& metrics);
  ~Gateway();

  // Begins to look after idle connections and silent sandboxes.
  void Start();
  Task<void> Stop();

  // Answers the request if it is traffic into a sandbox. False: it is the control plane's, and
  // nothing was done.
  Task<bool> Handle(http::Exchange& exchange);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::gateway
