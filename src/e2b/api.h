// The control plane of E2B's API: thin handlers that decode, ask sandbox::Manager and encode.
#pragma once

#include <string>
#include <string_view>

#include "base/config.h"
#include "e2b/codec.h"
#include "e2b/control_plane.h"
#include "sandbox/template.h"

namespace caisson::e2b {

class Api : public ControlPlane {
 public:
  // All of these outlive the Api. `port` is the one the server listens on.
  Api(sandbox::Manager& manager, const account::Accounts& accounts, account::AuditTrail& audit,
      const sandbox::TemplateCatalog& templates, const Config& config, uint16_t port);

  void AddRoutes(http::Router& router);

  // Where previews are found: the `domain` of answers, with the port if clients must name it.
  const std::string& domain() const { return domain_; }

 private:
  using Method = Answer (Api::*)(Call);
  struct RouteEntry {
    std::string_view method;
    std::string_view pattern;
    Method handler;
  };
  static std::span<const RouteEntry> Routes();

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

  // ---- pause_routes.cc
  Answer Pause(Call call);
  Answer Resume(Call call);
  Answer Fork(Call call);
  Answer MakeSnapshot(Call call);
  Answer ListSnapshots(Call call);

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

  // Of this key: what a request leaves out is never more than it may ask for.
  Defaults DefaultsOf(const std::string& key_id) const;

  const sandbox::TemplateCatalog& templates_;
  const std::string domain_;
  const Defaults defaults_;
};

}  // namespace caisson::e2b
