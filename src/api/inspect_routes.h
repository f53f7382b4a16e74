// What E2B's API has no words for about the server's sandboxes: their timeline, diagnostics and
// limits; the server's disk use; draining.
#pragma once

#include "api/frame.h"
#include "sandbox/manager.h"

namespace caisson::api {

// All outlive the frame.
void AddInspectRoutes(Frame& frame, sandbox::Manager& manager, const Config& config);

}  // namespace caisson::api
