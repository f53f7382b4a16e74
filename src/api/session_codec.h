// Sessions and their messages as /api/v1 shows them.
#pragma once

#include "api/frame.h"
#include "session/sessions.h"

namespace caisson::api {

json::object Encode(const session::SessionView& view);
json::object Encode(const store::MessageRow& message);
json::object Encode(const session::Exchange& exchange);
json::object Encode(const session::Model& model);
// Of the route family of sessions: "active", "paused", "provisioning", "error", "terminated".
json::object EncodeSessionSandbox(const work::SandboxRow& row, const std::string& session_id);

session::NewSession ReadNewSession(const json::object& body);
session::SessionChange ReadSessionChange(const json::object& body);

void AddSessionSchemas(Frame& frame);

}  // namespace caisson::api
