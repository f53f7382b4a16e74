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
  // Previews live below it ("caisson.localhost"); the page may show them in frames.
  std::string domain;
};

// GET /health, /metrics, / (to /app), /app with everything below it, and /docs with what it loads.
// None needs a key, none tells a secret.
void AddSiteRoutes(http::Router& router, SiteOptions options);

// The page for a browser: every address below /app that is no file shows it. `nonce` is new each
// time.
std::string RenderPage(std::string_view nonce);

// What the page may load, run and show, as a Content-Security-Policy.
std::string PagePolicy(std::string_view nonce, std::string_view domain);

}  // namespace caisson::cli
