#include "mcp/server.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "store/sandbox_rows.h"
#include "work/json_fields.h"

namespace caisson::mcp {
namespace {

using work::ObjectIn;
using work::TextOf;

// The newest first; it is what a client gets that asks for one that is not here.
constexpr std::array<std::string_view, 4> kVersions = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                       "2024-11-05"};
constexpr int kNoSuchMethod = -32601, kWrongParameters = -32602;

constexpr std::string_view kMessage = R"({"type":"object","required":["jsonrpc"],"properties":{
  "jsonrpc":{"const":"2.0"},"id":{"type":["string","integer"]},
  "method":{"type":"string","maxLength":200},
  "params":{"type":"object","additionalProperties":true},
  "result":{"type":"object","additionalProperties":true},
  "error":{"type":"object","additionalProperties":true}}})";
constexpr std::string_view kAnswer = R"({"type":"object","required":["jsonrpc","id"],"properties":{
  "jsonrpc":{"const":"2.0"},"id":{"type":["string","integer"]},
  "result":{"type":"object","additionalProperties":true},
  "error":{"type":"object","required":["code","message"],"properties":{
    "code":{"type":"integer"},"message":{"type":"string"}}}}})";

constexpr std::string_view kInstructions =
    "Tools that act inside one sandbox, an isolated machine of its own. Name it as sandbox_id, "
    "unless the URL of this server names one.";

std::string SandboxOf(const api::Call& call, const json::object& arguments) {
  std::string named = TextOf(arguments, "sandbox_id");
  return named.empty() ? std::string(call.query.Get("sandbox_id").value_or("")) : named;
}

json::object ToResult(const http::Response& response) {
  boost::system::error_code ec;
  json::value body = json::parse(response.body, ec);
  const json::object* object = ec ? nullptr : body.if_object();
  bool failed = response.status >= 400 || !object;
  std::string text = response.body;
  if (failed && object) {
    const json::object& error = ObjectIn(*object, "error");
    text = fmt::format("{}: {}", TextOf(error, "code"), TextOf(error, "message"));
  }
  json::object result{{"content", json::array{json::object{{"type", "text"}, {"text", text}}}},
                      {"isError", failed}};
  if (!failed) result["structuredContent"] = *object;
  return result;
}

}  // namespace

Server::Server(store::Store& store, const Config& config) : store_(store), config_(config) {
  for (const Tool& tool : Tools()) schemas_.Add(tool.name, SchemaOf(tool));
}

void Server::Add(api::Frame& frame) {
  frame_ = &frame;
  frame.AddSchema("McpMessage", kMessage);
  frame.AddSchema("McpAnswer", kAnswer);
  frame.Add({.method = "POST",
             .pattern = "/mcp",
             .tag = "mcp",
             .id = "sendMcpMessage",
             .summary = "The Model Context Protocol: tools that act in one of your sandboxes",
             .access = api::Access::kViewer,
             .parameters = {{.name = "sandbox_id", .description = "of all calls of this client"}},
             .request = "McpMessage",
             .lasts = true,
             .responses = {{200, "McpAnswer"}, {202, ""}},
             .handler = [this](api::Call& call) { return Handle(call); }});
}

Status Server::CheckOrigin(const http::RequestHead& request) const {
  std::string_view origin = request.headers.Value("Origin");
  std::string_view host = request.headers.Value("Host");
  if (origin.empty() || origin == fmt::format("http://{}", host) ||
      origin == fmt::format("https://{}", host))
    return {};
  for (std::string_view known : Split(config_.cors_origins, ','))
    if (Trim(known) == origin) return {};
  return Fail(Code::kPermissionDenied, "Pages of this origin may not use /mcp; see cors_origins.");
}

api::Answer Server::Handle(api::Call& call) {
  const http::RequestHead& request = call.exchange.request();
  CO_TRY(CheckOrigin(request));
  std::string_view version = request.headers.Value("MCP-Protocol-Version");
  if (!version.empty() && std::ranges::find(kVersions, version) == kVersions.end())
    co_return Fail(Code::kInvalidArgument,
                   "The version {} of the protocol is not known; there are {}.", ToUtf8(version),
                   fmt::join(kVersions, ", "));
  std::string method = TextOf(call.body, "method");
  const json::value* id = call.body.if_contains("id");
  // Notifications, and answers to questions that were never asked.
  if (!id || method.empty()) co_return http::Response::Empty(202);
  json::object answer{{"jsonrpc", "2.0"}, {"id", *id}};
  auto outcome = co_await Dispatch(call, method);
  if (outcome)
    answer["result"] = std::move(*outcome);
  else
    answer["error"] = {{"code", outcome.error().code}, {"message", outcome.error().message}};
  co_return http::Response::Json(200, answer);
}

Task<Server::Outcome<json::object>> Server::Dispatch(api::Call& call, const std::string& method) {
  if (method == "initialize") co_return Initialize(ObjectIn(call.body, "params"));
  if (method == "ping") co_return json::object();
  if (method == "tools/list") co_return co_await ListTools(call);
  if (method == "tools/call") co_return co_await CallTool(call);
  co_return tl::unexpected(
      Problem{kNoSuchMethod, fmt::format("There is no method {}.", ToUtf8(method))});
}

json::object Server::Initialize(const json::object& params) const {
  std::string wanted = TextOf(params, "protocolVersion");
  bool known = std::ranges::find(kVersions, wanted) != kVersions.end();
  return {{"protocolVersion", known ? std::string_view(wanted) : kVersions.front()},
          {"capabilities", {{"tools", {{"listChanged", false}}}}},
          {"serverInfo", {{"name", "caisson"}, {"version", CAISSON_VERSION}}},
          {"instructions", kInstructions}};
}

Task<Server::Outcome<json::object>> Server::ListTools(api::Call& call) {
  json::array tools;
  for (const Tool& tool : Tools())
    if (co_await IsAllowed(call.who, SandboxOf(call, {}), tool)) tools.push_back(Describe(tool));
  co_return json::object{{"tools", std::move(tools)}};
}

Task<Server::Outcome<json::object>> Server::CallTool(api::Call& call) {
  auto wrong = [](std::string message) {
    return tl::unexpected(Problem{kWrongParameters, std::move(message)});
  };
  const json::object& params = ObjectIn(call.body, "params");
  std::string name = TextOf(params, "name");
  const Tool* tool = FindTool(name);
  if (!tool) co_return wrong(fmt::format("There is no tool {}.", ToUtf8(name)));
  json::value given = ObjectIn(params, "arguments");
  if (Status fits = schemas_.Check(tool->name, given); !fits)
    co_return wrong(fits.error().message());
  const json::object& arguments = given.as_object();
  std::string sandbox_id = SandboxOf(call, arguments);
  if (sandbox_id.empty()) co_return wrong("Say which sandbox is meant: sandbox_id.");
  if (!co_await IsAllowed(call.who, sandbox_id, *tool))
    co_return wrong(fmt::format("The tool {} may not be used here.", tool->name));
  call.target = fmt::format("{} {}", tool->name, ToUtf8(sandbox_id));
  api::Call inner{.exchange = call.exchange,
                  .params = {{"id", sandbox_id}},
                  .query = QueryOf(*tool, arguments),
                  .who = call.who,
                  .body = BodyOf(*tool, arguments)};
  co_return ToResult(co_await frame_->Run(tool->operation, inner));
}

Task<bool> Server::IsAllowed(const api::Principal& who, std::string sandbox_id, const Tool& tool) {
  if (!tool.reads && who.role == "viewer") co_return false;
  if (sandbox_id.empty()) co_return true;
  auto agent =
      co_await store_.Read([sandbox_id, owner_id = who.user_id](
                               store::Transaction& tx) -> Result<std::optional<store::AgentRow>> {
        TRY_ASSIGN(auto row, tx.Get<store::WorkSandboxRow>(sandbox_id));
        // SECURITY: somebody else's sandbox is one that does not exist, which the operation tells.
        if (!row || row->owner_id != owner_id || !row->agent_id)
          return std::optional<store::AgentRow>();
        return tx.Get<store::AgentRow>(*row->agent_id);
      });
  // What the operation itself says is better than anything that could be said here.
  if (!agent) co_return tool.reads;
  co_return !*agent || MayUse(**agent, tool);
}

}  // namespace caisson::mcp
