#include "api/editor_routes.h"

#include <boost/json.hpp>

#include "api/sandbox_routes.h"
#include "gateway/editor_pass.h"
#include "work/preview_url.h"

namespace caisson::api {
namespace {

constexpr std::string_view kEditor = R"({
  "type": "object", "required": ["port", "url", "expires_at", "traffic_access_token"],
  "properties": {
    "port": {"type": "integer"},
    "url": {"type": "string", "description": "for a browser: a way in until it expires"},
    "expires_at": {"type": "string", "format": "date-time"},
    "traffic_access_token": {"type": "string",
      "description": "for programs, as the header e2b-traffic-access-token"}}})";

Answer Open(EditorSources from, Call& call) {
  auto sandbox = co_await from.editors.Open(call.who.user_id, call.params.at("id"));
  if (!sandbox) co_return RefusedSandbox(sandbox.error(), call);
  const sandbox::Route* route = from.manager.FindRoute(sandbox->backend_id);
  if (!route)
    co_return RefusedSandbox(
        {Code::kFailedPrecondition, "not_running: the sandbox has stopped meanwhile"}, call);
  uint16_t port = from.editors.port();
  Time until = Now() + gateway::kEditorAddressTime;
  std::string url = work::PreviewUrl(from.sandboxes.provider(), from.config, from.server_port,
                                     sandbox->backend_id, port);
  url += fmt::format("/?{}={}", gateway::kEditorPass,
                     gateway::MakeEditorPass(route->traffic_token, port, until));
  co_return http::Response::Json(200, json::object{{"port", port},
                                                   {"url", url},
                                                   {"expires_at", FormatTime(until)},
                                                   {"traffic_access_token", route->traffic_token}});
}

}  // namespace

void AddEditorRoutes(Frame& frame, EditorSources sources) {
  frame.AddSchema("Editor", kEditor);
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sandboxes/{id}/editor",
             .tag = "sandboxes",
             .id = "openEditor",
             .summary = "Start the editor of a sandbox, if it does not run, and get the way in",
             .access = Access::kMember,
             .secret = true,
             .responses =
                 {{200, "Editor"}, {409, "Error"}, {501, "Error"}, {503, "Error"}, {504, "Error"}},
             .handler = [sources](Call& call) { return Open(sources, call); }});
}

}  // namespace caisson::api
