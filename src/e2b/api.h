// The control plane of E2B's API: thin handlers that decode, ask sandbox::Manager and encode.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/config.h"
#include "e2b/codec.h"
#include "http/router.h"
#include "sandbox/key_ring.h"
#include "sandbox/manager.h"
#include "sandbox/template.h"

namespace caisson::e2b {

class Api {
 public:
  // All of these outlive the Api. `port` is the one the server listens on.
  Api(sandbox::Manager& manager, const sandbox::KeyRing& keys,
      const sandbox::TemplateCatalog& templates, const Config& config, uint16_t port);

  // Adds every route, and an OPTIONS route beside each for browsers. Every answer, refusals
  // included, has E2B's shape and CORS headers.
  void AddRoutes(http::Router& router);

  // Where previews are found: the `domain` of answers, with the port if clients must name it.
  const std::string& domain() const { return domain_; }

 private:
  // One authenticated request.
  struct Call {
    http::Exchange& exchange;
    http::PathParams params;
    std::string key_id;

    http::Query query() const { return exchange.request().ParsedQuery(); }
  };
  using Answer = Task<Result<http::Response>>;
  using Method = Answer (Api::*)(Call);
  struct RouteEntry {
    std::string_view method;
    std::string_view pattern;
    Method handler;
  };
  static std::span<const RouteEntry> Routes();

  // Authenticates, runs the handler, sends its answer.
  Task<void> Serve(http::Exchange& exchange, http::PathParams params, Method handler);
  Task<void> ServePreflight(http::Exchange& exchange, std::string methods);
  Result<std::string> Authenticate(const http::RequestHead& request) const;
  // The whole body. One that stops coming has been answered (408) when this returns its error.
  Task<Result<std::string>> ReadText(http::Exchange& exchange) const;
  Task<Result<boost::json::object>> ReadBody(http::Exchange& exchange, bool optional) const;
  // The sandbox that the path names, if the caller owns it.
  Result<sandbox::Info> Find(const Call& call) const;

  // ---- sandbox_routes.cc
  Answer CreateV1(Call call);
  Answer CreateV2(Call call);
  Answer Create(Call call, Version version);
  Answer ListV1(Call call);
  Answer ListV2(Call call);
  Answer Get(Call call);
  Answer Kill(Call call);
  Answer ConnectV1(Call call);
  Answer ConnectV2(Call call);
  Answer Connect(Call call, Version version);
  Answer SetTimeout(Call call);
  Answer Refresh(Call call);
  Answer SetNetwork(Call call);
  Answer NotYet(Call call);

  // ---- history_routes.cc
  Answer Metrics(Call call);
  Answer MetricsOfMany(Call call);
  Answer LogsV1(Call call);
  Answer LogsV2(Call call);

  // ---- template_routes.cc
  Answer ListTemplates(Call call);
  Answer FindAlias(Call call);
  Answer DeleteTemplate(Call call);
  Answer BuildTemplate(Call call);
  Answer ListSnapshots(Call call);

  sandbox::Manager& manager_;
  const sandbox::KeyRing& keys_;
  const sandbox::TemplateCatalog& templates_;
  const Config& config_;
  const std::string domain_;
  const Defaults defaults_;
};

}  // namespace caisson::e2b
