// What all routes of the control plane have in common: the key, the rates, bodies, the shape of
// answers. E2B's routes and our own are built on it.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "http/router.h"
#include "sandbox/key_ring.h"
#include "sandbox/manager.h"

namespace caisson::e2b {

class ControlPlane {
 public:
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

 protected:
  // All of these outlive it.
  ControlPlane(sandbox::Manager& manager, const sandbox::KeyRing& keys, const Config& config)
      : manager_(manager), keys_(keys), config_(config) {}
  ~ControlPlane() = default;

  // One authenticated request.
  struct Call {
    http::Exchange& exchange;
    http::PathParams params;
    std::string key_id;

    http::Query query() const { return exchange.request().ParsedQuery(); }
  };
  using Answer = Task<Result<http::Response>>;
  using Handler = std::function<Answer(Call)>;
  struct Route {
    std::string_view method;
    std::string_view pattern;
    Handler handler;
  };

  // Adds the routes, and an OPTIONS route beside each for browsers. Every answer, refusals
  // included, has E2B's shape and CORS headers.
  void Add(http::Router& router, std::vector<Route> routes);

  // The whole body. One that stops coming has been answered (408) when this returns its error.
  Task<Result<std::string>> ReadText(http::Exchange& exchange) const;
  Task<Result<boost::json::object>> ReadBody(http::Exchange& exchange, bool optional) const;

  sandbox::Manager& manager_;
  const sandbox::KeyRing& keys_;
  const Config& config_;

 private:
  // Authenticates, counts against the key's rate, runs the handler, sends its answer.
  Task<void> Serve(http::Exchange& exchange, http::PathParams params, Handler handler);
  Answer Ask(http::Exchange& exchange, http::PathParams params, std::string key_id,
             Handler handler);
  Task<void> ServePreflight(http::Exchange& exchange, std::string methods);
  Result<std::string> Authenticate(const http::RequestHead& request) const;
};

// An integer parameter of the query within a range; nothing if it is absent.
Result<std::optional<int64_t>> TakeNumber(const http::Query& query, std::string_view name,
                                          int64_t min, int64_t max);

}  // namespace caisson::e2b
