// The routes of the server itself: health, metrics, and the page for people.
#pragma once

#include <functional>
#include <string>

#include "base/metrics.h"
#include "http/router.h"

namespace caisson::cli {

struct SiteOptions {
  Metrics& metrics;
  // Called before metrics are shown, to set the gauges.
  std::function<void()> refresh;
};

// GET /health, /metrics, / (to /app), /app, /app/style.css. None needs a key, none tells a secret.
void AddSiteRoutes(http::Router& router, SiteOptions options);

// The page with the address under which the browser reached the server. `host` comes from the
// client: anything but a plain host and port is ignored.
std::string RenderPage(std::string_view scheme, std::string_view host);

}  // namespace caisson::cli
