// /api/v1/sandboxes/{id}/ports: what is listened on in a sandbox, and where that is reached.
#pragma once

#include "api/frame.h"
#include "work/editors.h"
#include "work/sandboxes.h"

namespace caisson::api {

// All outlive the frame. `server_port` is the one this server listens on.
void AddPortRoutes(Frame& frame, work::Sandboxes& sandboxes, const work::Editors& editors,
                   const Config& config, uint16_t server_port);

}  // namespace caisson::api
