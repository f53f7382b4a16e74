#include "e2b/api.h"

#include <array>

namespace caisson::e2b {
namespace {

std::string DomainWithPort(const Config& config, uint16_t port) {
  uint16_t usual = config.tls == "off" ? 80 : 443;
  if (port == usual || config.domain.find(':') != std::string::npos) return config.domain;
  return fmt::format("{}:{}", config.domain, port);
}

}  // namespace

Api::Api(sandbox::Manager& manager, const account::Accounts& accounts, account::AuditTrail& audit,
         const sandbox::TemplateCatalog& templates, const Config& config, uint16_t port)
    : ControlPlane(manager, accounts, audit, config),
      templates_(templates),
      domain_(DomainWithPort(config, port)),
      defaults_{.timeout_v2 = std::chrono::seconds(config.default_timeout_s)} {}

Defaults Api::DefaultsOf(const std::string& key_id) const {
  std::chrono::seconds longest = manager_.LongestTimeout(key_id);
  return {.timeout_v1 = std::min(defaults_.timeout_v1, longest),
          .timeout_v2 = std::min(defaults_.timeout_v2, longest)};
}

std::span<const Api::RouteEntry> Api::Routes() {
  static constexpr std::array kRoutes = {
      RouteEntry{"POST", "/sandboxes", &Api::CreateV1},
      RouteEntry{"POST", "/v2/sandboxes", &Api::CreateV2},
      RouteEntry{"GET", "/sandboxes", &Api::ListV1},
      RouteEntry{"GET", "/v2/sandboxes", &Api::ListV2},
      RouteEntry{"GET", "/sandboxes/metrics", &Api::MetricsOfMany},
      RouteEntry{"GET", "/sandboxes/{id}", &Api::Get},
      RouteEntry{"DELETE", "/sandboxes/{id}", &Api::Kill},
      RouteEntry{"POST", "/sandboxes/{id}/connect", &Api::ConnectV1},
      RouteEntry{"POST", "/v2/sandboxes/{id}/connect", &Api::ConnectV2},
      RouteEntry{"POST", "/sandboxes/{id}/timeout", &Api::SetTimeout},
      RouteEntry{"POST", "/sandboxes/{id}/refreshes", &Api::Refresh},
      RouteEntry{"PUT", "/sandboxes/{id}/network", &Api::SetNetwork},
      RouteEntry{"GET", "/sandboxes/{id}/metrics", &Api::Metrics},
      RouteEntry{"GET", "/sandboxes/{id}/logs", &Api::LogsV1},
      RouteEntry{"GET", "/v2/sandboxes/{id}/logs", &Api::LogsV2},
      RouteEntry{"POST", "/sandboxes/{id}/pause", &Api::Pause},
      RouteEntry{"POST", "/sandboxes/{id}/resume", &Api::Resume},
      RouteEntry{"POST", "/sandboxes/{id}/snapshots", &Api::MakeSnapshot},
      RouteEntry{"POST", "/sandboxes/{id}/fork", &Api::Fork},
      RouteEntry{"GET", "/snapshots", &Api::ListSnapshots},
      RouteEntry{"GET", "/templates", &Api::ListTemplates},
      RouteEntry{"GET", "/v2/templates", &Api::ListTemplates},
      RouteEntry{"GET", "/templates/aliases/{alias}", &Api::FindAlias},
      RouteEntry{"DELETE", "/templates/{id}", &Api::DeleteTemplate},
      RouteEntry{"DELETE", "/templates/{namespace}/{id}", &Api::DeleteTemplate},
      RouteEntry{"POST", "/v3/templates", &Api::BuildTemplate},
  };
  return kRoutes;
}

void Api::AddRoutes(http::Router& router) {
  std::vector<Route> routes;
  for (const RouteEntry& entry : Routes())
    routes.push_back({entry.method, entry.pattern, [this, method = entry.handler](Call call) {
                        return (this->*method)(std::move(call));
                      }});
  Add(router, std::move(routes));
}

Result<sandbox::Info> Api::Find(const Call& call) const {
  TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  return manager_.Get(call.key_id, id);
}

}  // namespace caisson::e2b
