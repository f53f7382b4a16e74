// Our own part of the control plane, /api/v1: what E2B's API has no words for. The same keys, the
// same shape of errors; docs/api.md describes every route.
#pragma once

#include "e2b/control_plane.h"

namespace caisson::api {

class Api : public e2b::ControlPlane {
 public:
  Api(sandbox::Manager& manager, const sandbox::KeyRing& keys, const Config& config)
      : ControlPlane(manager, keys, config) {}

  void AddRoutes(http::Router& router);

 private:
  using Method = Answer (Api::*)(Call);

  Answer Show(Call call);
  Answer Timeline(Call call);
  Answer Diagnostics(Call call);
  Answer SetLimits(Call call);
  Answer Storage(Call call);
  Answer Drain(Call call);
  Answer EndDrain(Call call);
};

}  // namespace caisson::api
