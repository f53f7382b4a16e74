#include "api/port_routes.h"

#include <boost/json.hpp>

#include "api/sandbox_routes.h"
#include "work/open_ports.h"
#include "work/preview_url.h"

namespace caisson::api {
namespace {

constexpr std::string_view kPort = R"({
  "type": "object", "required": ["port", "url", "process"],
  "properties": {
    "port": {"type": "integer"},
    "url": {"type": "string", "description": "where it is reached from outside"},
    "process": {"type": "string", "description": "who listens; empty if that is not known"}}})";
constexpr std::string_view kPortList = R"({
  "type": "object", "required": ["ports", "services", "total"],
  "properties": {
    "ports": {"type": "array", "items": {"$ref": "#/components/schemas/Port"}},
    "services": {"type": "object", "description": "ports with a name and a purpose",
      "properties": {"editor": {"type": "object", "required": ["port", "url", "open"],
        "description": "only if this server has one; openEditor starts it and gives the way in",
        "properties": {"port": {"type": "integer"}, "url": {"type": "string"},
          "open": {"type": "boolean", "description": "somebody listens there"}}}}},
    "total": {"type": "integer"}}})";

struct Sources {
  work::Sandboxes& sandboxes;
  const work::Editors& editors;
  const Config& config;
  uint16_t server_port;
};

Answer List(Sources from, Call& call) {
  auto sandbox = co_await from.sandboxes.Find(call.who.user_id, call.params.at("id"));
  if (!sandbox) co_return RefusedSandbox(sandbox.error(), call);
  auto ports = co_await work::FindOpenPorts(from.sandboxes, *sandbox);
  if (!ports) co_return RefusedSandbox(ports.error(), call);
  auto url = [&](uint16_t port) {
    return work::PreviewUrl(from.sandboxes.provider(), from.config, from.server_port,
                            sandbox->backend_id, port);
  };
  json::array items;
  for (const work::OpenPort& open : *ports)
    items.push_back(
        json::object{{"port", open.port}, {"url", url(open.port)}, {"process", open.process}});
  json::object services;
  if (uint16_t port = from.editors.port(); from.editors.Check()) {
    bool open = std::ranges::find(*ports, port, &work::OpenPort::port) != ports->end();
    services["editor"] = {{"port", port}, {"url", url(port)}, {"open", open}};
  }
  json::object body{{"total", items.size()}};
  body["ports"] = std::move(items);
  body["services"] = std::move(services);
  co_return http::Response::Json(200, body);
}

}  // namespace

void AddPortRoutes(Frame& frame, work::Sandboxes& sandboxes, const work::Editors& editors,
                   const Config& config, uint16_t server_port) {
  frame.AddSchema("Port", kPort);
  frame.AddSchema("PortList", kPortList);
  Sources sources{sandboxes, editors, config, server_port};
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/ports",
             .tag = "sandboxes",
             .id = "listPorts",
             .summary = "The TCP ports that are listened on inside; wakes nothing",
             .access = Access::kViewer,
             .responses = {{200, "PortList"}, {409, "Error"}, {503, "Error"}, {504, "Error"}},
             .handler = [sources](Call& call) { return List(sources, call); }});
}

}  // namespace caisson::api
