// /api/v1/sandboxes/{id}/editor: the editor of a sandbox, and the way in.
#pragma once

#include "api/frame.h"
#include "sandbox/manager.h"
#include "work/editors.h"

namespace caisson::api {

struct EditorSources {
  work::Editors& editors;
  work::Sandboxes& sandboxes;
  sandbox::Manager& manager;
  const Config& config;
  uint16_t server_port;  // the one this server listens on
};

// All outlive the frame.
void AddEditorRoutes(Frame& frame, EditorSources sources);

}  // namespace caisson::api
